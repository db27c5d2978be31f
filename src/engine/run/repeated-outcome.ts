import type { ExecutionOutcome } from '../../execution/types.ts';
import type { PooledBuffer } from '../json/buffer.ts';

/** The length up to which the last result of an operation is kept. */
const MAX_KEPT = 4096;
/** After so many different results in succession, the next ones are not compared. */
const MAX_MISSES = 16;
const UNCOMPARED = 64;
const NO_ERRORS: readonly never[] = Object.freeze([]);
const NO_BODY = Buffer.alloc(0);

type CopiedOutcome = ExecutionOutcome & { readonly body: Buffer };

/** Returns the outcome of an execution without errors, whose JSON text is the first bytes of a working buffer. */
export function copiedOutcome(buf: Buffer, length: number): CopiedOutcome {
  const body = Buffer.allocUnsafe(length);
  buf.copy(body, 0, 0, length);
  return { kind: 'data', body, errors: NO_ERRORS };
}

/**
 * The last result of a subscription. Private subscriptions of many clients often have equal results for one event. They
 * share the bytes, which take memory once and which the transport frames once.
 */
export class RepeatedOutcome {
  #last: CopiedOutcome | undefined;
  #body: Buffer = NO_BODY;
  /** The whole words of `#body`, once it has repeated. */
  #words: Int32Array | undefined;
  /** The number of different results in succession; negative while results are not compared. */
  #misses = 0;

  /** Returns an outcome whose body equals the first bytes of a working buffer. */
  outcomeOf(buffer: PooledBuffer, length: number): ExecutionOutcome {
    if (this.#misses < 0) {
      this.#misses++;
      return copiedOutcome(buffer.buf, length);
    }
    const last = this.#last;
    if (last !== undefined && length === this.#body.length && this.#equals(buffer)) {
      this.#misses = 0;
      return last;
    }
    const outcome = copiedOutcome(buffer.buf, length);
    const isKept = length <= MAX_KEPT && ++this.#misses < MAX_MISSES;
    if (!isKept) this.#misses = -UNCOMPARED;
    this.#last = isKept ? outcome : undefined;
    this.#body = isKept ? outcome.body : NO_BODY;
    this.#words = undefined;
    return outcome;
  }

  /** Compares the whole words first: a call of a native function costs more than all of them. */
  #equals({ buf, words }: PooledBuffer): boolean {
    const body = this.#body;
    const kept = this.#words;
    let at = 0;
    if (kept !== undefined) {
      for (let i = 0; i < kept.length; i++) if (kept[i] !== words[i]) return false;
      at = kept.length << 2;
    }
    for (; at < body.length; at++) if (body[at] !== buf[at]) return false;
    // A view needs an offset that is a multiple of four, as the offsets in Node's buffer pool are.
    if (kept === undefined && (body.byteOffset & 3) === 0) {
      this.#words = new Int32Array(body.buffer, body.byteOffset, body.length >> 2);
    }
    return true;
  }
}
