/** A count of bytes shared by all requests of one handler. */
export interface Budget {
  /** Takes bytes when there are enough left. */
  take(bytes: number): boolean;
  /** Gives them back. */
  give(bytes: number): void;
}

/** A budget of `total` bytes. */
export function createBudget(total: number): Budget {
  let left = total;
  return {
    take(bytes) {
      if (bytes > left) return false;
      left -= bytes;
      return true;
    },
    give(bytes) {
      left += bytes;
    },
  };
}
