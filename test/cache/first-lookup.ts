// Run by store.test.ts: a lookup whose process is busy while the code of the memory store is imported.
import { createProcessStore, FailsafeStore } from '../../src/cache/store.ts';

const errors: string[] = [];
const store = new FailsafeStore(
  createProcessStore(1e6, undefined),
  (error) => void errors.push(String(error)),
);
const result = store.get('k');
const began = performance.now();
while (performance.now() - began < 100);
process.stdout.write(JSON.stringify({ lookup: await result, errors }));
