import { runAlone } from './run-in-process.ts';

it('works where no code may be made from strings', () => {
  const written = runAlone('test/engine/no-eval.ts', ['--disallow-code-generation-from-strings']);
  expect(JSON.parse(written)).toEqual({ blocked: true, body: '{"data":{"text":"got 3"}}' });
});
