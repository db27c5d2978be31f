import type { MemoryAccount } from '../../execution/types.ts';

/** Measured on Node 22: the bytes that a compiled field and a compiled selection set retain, without document nodes. */
const FIELD_BYTES = 1300;
const SELECTION_SET_BYTES = 300;
const REFERENCE_BYTES = 8;

/** Charges the compiled form of one operation to its account. */
export class CompiledMemory {
  /** The account has refused a charge, so the operation has to release its compiled form. */
  isExceeded = false;
  /** Bytes added since the last charge. */
  #bytes = 0;
  #charged = 0;
  readonly #account: MemoryAccount | undefined;

  constructor(account: MemoryAccount | undefined) {
    this.#account = account;
  }

  addField(): void {
    this.#bytes += FIELD_BYTES;
  }

  /** Charges a selection set together with the fields that were added for it. */
  addSelectionSet(fields: number): void {
    const bytes = this.#bytes + SELECTION_SET_BYTES + fields * REFERENCE_BYTES;
    this.#bytes = 0;
    this.#charged += bytes;
    if (this.#account?.charge(bytes) === false) this.isExceeded = true;
  }

  /** Returns all charged bytes to the account. */
  release(): void {
    if (this.#charged === 0) return;
    this.#account?.charge(-this.#charged);
    this.#charged = 0;
  }
}
