import type { ExecutionOutcome } from '../../execution/types.ts';
import type { SendQueue } from './send-queue.ts';

/** An operation whose private results are sent. */
export interface ResultTarget {
  readonly queue: SendQueue;
  send(body: string | Buffer, mode: 'batched'): void;
}

/** Sends the result of one event that was executed for one subscription alone. */
export type SendPrivateResult = (target: ResultTarget, outcome: ExecutionOutcome) => void;

/** The length from which a result is sent immediately and compared with the previous result. */
const LARGE_RESULT = 16 * 1024;
/** The size up to which a buffer is kept for the next result. */
const MAX_KEPT_BUFFER = 1024 * 1024;
const EMPTY = Buffer.alloc(0);

/**
 * Large results are written immediately, which releases their buffers if the client keeps up. Slow clients
 * often wait for equal results, so a result that equals the previous one shares its buffer.
 */
export function createPrivateResultSender(): SendPrivateResult {
  const encode = createEncoder();
  let previous: WeakRef<Buffer> | undefined;
  return (target, { body, release }) => {
    if (body.length < LARGE_RESULT) {
      target.send(body, 'batched');
      return;
    }
    const result = typeof body === 'string' ? encode(body) : { bytes: body, release };
    const kept = previous?.deref();
    if (kept?.equals(result.bytes) === true) {
      target.send(kept, 'batched');
      result.release?.();
      return;
    }
    target.send(result.bytes, 'batched');
    if (target.queue.flushAndRelease()) result.release?.();
    else previous = new WeakRef(result.bytes);
  };
}

/** Creates an encoder that reuses the buffer that was released last. */
function createEncoder(): (text: string) => { bytes: Buffer; release: () => void } {
  let free = EMPTY;
  return (text) => {
    const length = Buffer.byteLength(text);
    const buffer = free.length < length || length * 2 < free.length ? Buffer.allocUnsafeSlow(length) : free;
    free = EMPTY;
    buffer.write(text);
    const release = (): void => {
      if (buffer.length <= MAX_KEPT_BUFFER) free = buffer;
    };
    return { bytes: buffer.subarray(0, length), release };
  };
}
