import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

let collect: (() => void) | undefined;

/** Collects garbage, and returns the memory of the process. */
export function memoryInUse(): NodeJS.MemoryUsage {
  if (collect === undefined) {
    setFlagsFromString('--expose-gc');
    collect = runInNewContext('gc') as () => void;
  }
  collect();
  // Finalizers of the first collection release more.
  collect();
  return process.memoryUsage();
}
