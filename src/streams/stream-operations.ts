import { HttpError } from '../http/reply/http-error.ts';
import type { EndpointSettings } from '../subscriptions/endpoint.ts';
import type { StreamOperation } from './stream-operation.ts';

/** The operations in progress of one event stream. */
export class StreamOperations {
  readonly #byId = new Map<string | undefined, StreamOperation>();
  #bytes = 0;

  get size(): number {
    return this.#byId.size;
  }

  /** Returns a copy: operations that are cancelled leave the collection. */
  all(): readonly StreamOperation[] {
    return [...this.#byId.values()];
  }

  get(id: string): StreamOperation | undefined {
    return this.#byId.get(id);
  }

  /** @throws HttpError 409, 413, 429. */
  add(operation: StreamOperation, { maxOperations, maxOperationBytes }: EndpointSettings): void {
    if (this.#byId.has(operation.id)) {
      const message = `The operation id ${JSON.stringify(operation.id)} is in use`;
      throw new HttpError(409, message, { code: 'OPERATION_ID_IN_USE' });
    }
    if (this.#byId.size >= maxOperations) {
      throw new HttpError(429, 'Too many operations at a time', { code: 'OPERATION_REFUSED' });
    }
    if (this.#bytes + operation.bytes > maxOperationBytes) {
      const message = 'The documents and variables of the operations in progress are too large together';
      throw new HttpError(413, message, { code: 'OPERATION_REFUSED' });
    }
    this.#bytes += operation.bytes;
    this.#byId.set(operation.id, operation);
  }

  delete(operation: StreamOperation): void {
    // The id may already belong to a newer operation.
    if (this.#byId.get(operation.id) !== operation) return;
    this.#byId.delete(operation.id);
    this.#bytes -= operation.bytes;
  }
}
