/** @tags once */
import { execFile } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { buildSchema, GraphQLError } from 'graphql';
import { graphqlHTTP } from '../../middleware/graphql.ts';
import { mcp } from '../../middleware/mcp.ts';
import { createServer } from '../../middleware/server.ts';
import { listen } from '../kit.ts';
import { nodeOf } from '../programs.ts';

// The scenarios of @modelcontextprotocol/conformance that concern tools of text. The others call tools with
// images, logs, sampling, prompts and resources, which an API of GraphQL does not have.

jest.setTimeout(120_000);

const SCENARIOS = [
  'server-initialize',
  'ping',
  'tools-list',
  'tools-call-simple-text',
  'tools-call-error',
  'server-sse-multiple-streams',
  'dns-rebinding-protection',
];

const folder = mkdtempSync(join(tmpdir(), 'mcp-conformance-'));
const program = join(__dirname, 'node_modules/@modelcontextprotocol/conformance/dist/index.js');
const schema = buildSchema('type Query { simple: String, failing: String }');
const rootValue = {
  simple: 'This is a simple text response for testing.',
  failing: () => {
    throw new GraphQLError('This tool intentionally returns an error for testing');
  },
};
const from = {
  simple: 'query test_simple_text { simple }',
  failing: 'query test_error_handling { failing }',
};

let server: ReturnType<typeof createServer>;
let url: string;

beforeAll(async () => {
  const endpoint = mcp(graphqlHTTP(schema, { rootValue, documents: { from } }), {
    name: 'test',
    version: '1.0.0',
  });
  server = createServer((req, res) => endpoint(req, res, () => res.end()));
  ({ url } = await listen(server, '/'));
});

afterAll(async () => {
  server.closeAllConnections();
  await new Promise((done) => server.close(done));
  rmSync(folder, { recursive: true });
});

it.each(SCENARIOS)('the endpoint passes the scenario %s of the conformance suite', async (scenario) => {
  const output = join(folder, scenario);
  const args = [program, 'server', '--url', url, '--scenario', scenario, '-o', output];
  const { stdout } = await promisify(execFile)(nodeOf(22), args).catch((error: { stdout: string }) => error);
  const [run] = readdirSync(output);
  const checks: { status: string }[] = JSON.parse(
    readFileSync(join(output, run ?? '', 'checks.json'), 'utf8'),
  );
  expect([stdout, checks.filter(({ status }) => status === 'FAILURE')]).toEqual([stdout, []]);
  expect(checks.length).toBeGreaterThan(0);
});
