/** The members of a thrown value that reports contain. */
interface ErrorFacts {
  readonly name: string | undefined;
  readonly message: string;
  /** `extensions.code` of a GraphQLError, or the `code` of an error of Node. */
  readonly code: string | undefined;
  readonly path: readonly (string | number)[] | undefined;
  readonly locations: readonly unknown[] | undefined;
  readonly originalError: unknown;
}

interface ErrorLike extends Partial<Record<keyof ErrorFacts, unknown>> {
  readonly extensions?: { readonly code?: unknown } | undefined;
}

const UNREADABLE: ErrorFacts = {
  name: undefined,
  message: 'The members of the error cannot be read',
  code: undefined,
  path: undefined,
  locations: undefined,
  originalError: undefined,
};

/** Reads any thrown value. Never throws: a resolver may throw an object whose getters throw. */
export function readError(value: unknown): ErrorFacts {
  try {
    if (typeof value !== 'object' || value === null) return { ...UNREADABLE, message: String(value) };
    const { name, message, code, path, locations, extensions, originalError }: ErrorLike = value;
    const given = extensions?.code ?? code;
    return {
      name: typeof name === 'string' && name !== '' ? name : undefined,
      message: String(message),
      code: typeof given === 'string' && given !== '' ? given : undefined,
      path: Array.isArray(path) ? path : undefined,
      locations: Array.isArray(locations) ? locations : undefined,
      originalError,
    };
  } catch {
    return UNREADABLE;
  }
}
