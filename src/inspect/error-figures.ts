import type { ErrorFigures } from '../../types/inspect.ts';
import { readError } from '../diagnostics/error-facts.ts';
import { CLIENT_ABORTED } from '../http/body/read-body.ts';

/** Different codes; the oldest is replaced by a new one. */
const MAX_CODES = 50;
const MAX_LENGTH = 300;

/** Errors by code. */
export class ErrorCounters {
  /** The most recent one is last. */
  readonly #byCode = new Map<string, ErrorFigures>();
  add(errors: readonly unknown[], operation: string | undefined): void {
    for (const value of errors) {
      const { code, message } = describe(value);
      const count = (this.#byCode.get(code)?.count ?? 0) + 1;
      this.#byCode.delete(code);
      const last = new Date().toISOString();
      this.#byCode.set(code, { code, count, message, operation: operation ?? null, last });
      if (this.#byCode.size > MAX_CODES) this.#byCode.delete(this.#byCode.keys().next().value as string);
    }
  }

  read(): ErrorFigures[] {
    return [...this.#byCode.values()].reverse();
  }
}

function describe(value: unknown): { readonly code: string; readonly message: string } {
  const { code, message } = readError(value);
  // Unexpected errors get their code when they are masked.
  const known = code ?? (value === CLIENT_ABORTED ? 'CLIENT_ABORTED' : 'INTERNAL_SERVER_ERROR');
  return { code: known.slice(0, MAX_LENGTH), message: message.slice(0, MAX_LENGTH) };
}
