/** What every answer begins with; idle buffers keep it written, so that an execution starts behind it. */
export const OPENING: Buffer = Buffer.from('{"data":');

/** Working buffers that rest between executions. Their bytes are always copied out before they come back. */
export interface BufferPool {
  take(): Buffer;
  give(buffer: Buffer): void;
  /** Bytes at rest. */
  idleBytes(): number;
}

const FIRST_SIZE = 8 * 1024;
const MAX_KEPT_SIZE = 1024 * 1024;
const MAX_IDLE_BYTES = 4 * 1024 * 1024;
const MAX_IDLE_COUNT = 64;

/** A pool bounded in count and in bytes; what does not fit is left to the garbage collector. */
export function createPool(): BufferPool {
  const idle: Buffer[] = [];
  let bytes = 0;
  return {
    take() {
      const buffer = idle.pop();
      if (buffer === undefined) return fresh();
      bytes -= buffer.length;
      return buffer;
    },
    give(buffer) {
      if (idle.length === MAX_IDLE_COUNT || buffer.length > MAX_KEPT_SIZE) return;
      if (bytes + buffer.length > MAX_IDLE_BYTES) return;
      bytes += buffer.length;
      idle.push(buffer);
    },
    idleBytes: () => bytes,
  };
}

function fresh(): Buffer {
  const buffer = Buffer.allocUnsafeSlow(FIRST_SIZE);
  OPENING.copy(buffer);
  return buffer;
}
