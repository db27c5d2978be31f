// Run by error-modes.test.ts: executes operations with grafast in each error mode. Standard input: a list of texts.
import { readFileSync } from 'node:fs';
import { grafast } from 'grafast';
import { buildSchema } from 'graphql';
import { addResolvers, MODES, SDL } from '../failing-schema.mjs';

const schema = addResolvers(buildSchema(SDL));
const results = [];
for (const source of JSON.parse(readFileSync(0, 'utf8'))) {
  for (const onError of MODES) {
    const { data, errors = [] } = await grafast({ schema, source, onError });
    results.push({ data, failed: errors.length > 0 });
  }
}
process.stdout.write(JSON.stringify(results));
