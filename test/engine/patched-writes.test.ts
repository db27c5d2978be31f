/** @tags graphql */
import { runInProcess } from './run-in-process.ts';

// A response whose prototype is patched is written with `end`.
it.each([
  ['ServerResponse', 0],
  ['Socket', 20],
])('no buffer is reused if the program patched write of %s before espalier was loaded', (patched, large) => {
  const written = runInProcess('test/engine/patched-writes.ts', [], [patched]);
  expect(JSON.parse(written)).toEqual({ overwritten: 0, large });
});
