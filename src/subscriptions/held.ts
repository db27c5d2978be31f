import type { ExecutionOutcome } from '../execution/types.ts';
import type { Operation } from './operation.ts';

/** Sends the results that are executed for one subscription alone. */
export type Deliver = (operation: Operation, outcome: ExecutionOutcome) => void;

/** From so many bytes on a result is worth a look at what others hold. */
const LONG = 16 * 1024;
/** A larger buffer is not kept for the next result. */
const MOST_KEPT = 1024 * 1024;
const NONE = Buffer.alloc(0);

/**
 * Long results leave at once and give their bytes back, where the reader takes them. Those who do not are often sent the
 * same: equal results are held once, however many readers they wait for.
 */
export function createDeliver(): Deliver {
  const encode = createEncoder();
  let last: WeakRef<Buffer> | undefined;
  return (operation, { body, release }) => {
    if (body.length < LONG) {
      operation.emit(body, false);
      return;
    }
    const result = typeof body === 'string' ? encode(body) : { bytes: body, release };
    const held = last?.deref();
    if (held?.equals(result.bytes) === true) {
      operation.emit(held, false);
      result.release?.();
      return;
    }
    operation.emit(result.bytes, false);
    if (operation.connection.outlet.drain()) result.release?.();
    else last = new WeakRef(result.bytes);
  };
}

/** Text as bytes, in the buffer that was given back last. */
function createEncoder(): (text: string) => { bytes: Buffer; release: () => void } {
  let idle = NONE;
  return (text) => {
    const length = Buffer.byteLength(text);
    const page = idle.length < length || length * 2 < idle.length ? Buffer.allocUnsafeSlow(length) : idle;
    idle = NONE;
    page.write(text);
    const release = (): void => {
      if (page.length <= MOST_KEPT) idle = page;
    };
    return { bytes: page.subarray(0, length), release };
  };
}
