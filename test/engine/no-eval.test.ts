/** @tags graphql */
import { runInProcess } from './run-in-process.ts';

it('the engine runs under --disallow-code-generation-from-strings', () => {
  const written = runInProcess('test/engine/no-eval.ts', ['--disallow-code-generation-from-strings']);
  expect(JSON.parse(written)).toEqual({ blocked: true, body: '{"data":{"text":"got 3"}}' });
});
