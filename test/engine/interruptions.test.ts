/** @tags graphql */
import { runInProcess } from './run-in-process.ts';

// Runs in its own process, which counts unhandled rejections.
it('the engine handles throws, rejections and aborts at every point of an execution like graphql-js', () => {
  const { points, differences, buffers } = JSON.parse(runInProcess('test/engine/interruptions.ts'));
  expect(differences).toEqual([]);
  expect(points).toBeGreaterThan(500);
  // Every working buffer was given back, and code that continued after an abort took none.
  expect(buffers).toBe(0);
}, 120_000);
