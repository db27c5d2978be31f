/** @tags graphql */
import { runInProcess } from './run-in-process.ts';

// Runs in its own process: Jest counts an unhandled rejection as a failure of the test that is running.
const unhandled: Record<string, number> = JSON.parse(runInProcess('test/engine/rejections.ts'));

it('another process has executed the cases of unused promises', () => {
  expect(Object.keys(unhandled).length).toBeGreaterThan(20);
});

it.each(Object.entries(unhandled))('no rejection stays unhandled after %s', (_title, count) => {
  expect(count).toBe(0);
});
