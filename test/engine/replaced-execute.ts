// Run by replaced-execute.test.ts: a tracer wraps `execute` of graphql-js before or after the engine is loaded.
import { createRequire } from 'node:module';

const module = createRequire(import.meta.url)('graphql/execution/execute.js');
const wrap = (): void => {
  const { execute } = module;
  module.execute = Object.assign((...args: unknown[]) => execute(...args), { __original: execute });
};
const warnings: unknown[] = [];
process.on('warning', (warning) => warnings.push((warning as { code?: string }).code));
const when = process.argv[2];
if (when === 'before') wrap();
const { engines, prepare } = await import('./compare.ts');
const { buildSchema } = await import('graphql');
if (when === 'after') wrap();
for (const query of ['{ a }', '{ b: a }']) {
  await prepare(engines.compiled, buildSchema('type Query { a: String }'), query)();
}
await new Promise(setImmediate);
process.stdout.write(JSON.stringify(warnings));
