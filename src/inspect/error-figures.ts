import type { ErrorFigures } from '../../types/inspect.ts';

/** Different codes; the oldest is replaced by a new one. */
const MAX_CODES = 50;
const MAX_LENGTH = 300;

/** The members of errors that are used here. */
interface ErrorLike {
  readonly message?: unknown;
  readonly code?: unknown;
  readonly extensions?: { readonly code?: unknown } | undefined;
}

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
  if (typeof value !== 'object' || value === null) {
    return { code: 'CLIENT_ABORTED', message: String(value).slice(0, MAX_LENGTH) };
  }
  const { message, code, extensions }: ErrorLike = value;
  const given = extensions?.code ?? code;
  return {
    // Unexpected errors get their code when they are masked.
    code: (typeof given === 'string' ? given : 'INTERNAL_SERVER_ERROR').slice(0, MAX_LENGTH),
    message: String(message).slice(0, MAX_LENGTH),
  };
}
