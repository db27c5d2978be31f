/** @tags once slow */
import { runInProcess } from './run-in-process.ts';

it('the document cache evicts documents that retain much memory before the process runs out of memory', () => {
  const written = runInProcess('test/engine/document-memory.ts', ['--max-old-space-size=120'], ['120']);
  expect(JSON.parse(written)).toMatchObject({ count: 120, parsedAgain: 0 });
}, 120_000);

it.each(['list literals', 'fields', 'long strings', 'variables'])(
  'the document cache estimates at least what a parsed document of %s retains',
  (kind) => {
    const written = runInProcess('test/engine/retained-bytes.ts', ['--expose-gc'], [kind]);
    const { retained, estimated } = JSON.parse(written) as { retained: number; estimated: number };
    expect(retained).toBeGreaterThan(0);
    expect(estimated).toBeGreaterThan(retained);
    expect(estimated).toBeLessThan(retained * 10);
  },
);
