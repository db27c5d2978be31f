import { runInProcess } from './run-in-process.ts';

it('documents that retain much memory are evicted before the process runs out of memory', () => {
  const written = runInProcess('test/engine/document-memory.ts', ['--max-old-space-size=120'], ['120']);
  expect(written).toBe(JSON.stringify({ count: 120, parsedAgain: 0 }));
}, 120_000);
