import { runAlone } from './run-in-process.ts';

// In a process of its own, which sees rejections that nobody handles.
it('throws, rejections and aborts come to what graphql-js makes of them, wherever they happen', () => {
  const { points, differences, buffers } = JSON.parse(runAlone('test/engine/interruptions.ts'));
  expect(differences).toEqual([]);
  expect(points).toBeGreaterThan(500);
  // Every working buffer has come back, and none was taken by what went on behind an abort.
  expect(buffers).toBe(0);
}, 120_000);
