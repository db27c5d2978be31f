/** Bytes of memory that all requests of one handler share. */
export interface MemoryBudget {
  /** Reserves bytes if that many are left. */
  reserve(bytes: number): boolean;
  /** Returns reserved bytes. */
  release(bytes: number): void;
}

export function createMemoryBudget(total: number): MemoryBudget {
  let left = total;
  return {
    reserve(bytes) {
      if (bytes > left) return false;
      left -= bytes;
      return true;
    },
    release(bytes) {
      left += bytes;
    },
  };
}
