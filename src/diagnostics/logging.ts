import type { ErrorDetails } from '../../types/graphql.ts';
import { packages } from './packages.ts';

/** The option `onError`: a function, `false` for no reports, or undefined to log them. */
export type OnError = false | ((error: unknown, details: ErrorDetails) => unknown) | undefined;

/** Reports unexpected errors to the operator. Never throws. */
export interface Reporter {
  /** Reports an error that the client sees as "Internal server error". */
  report(error: unknown, details: ErrorDetails): void;
  /**
   * Reports an error that is also passed to `next(error)`. Application error handlers log it, so it is not
   * logged here.
   */
  reportForwarded(error: unknown, details: ErrorDetails): void;
  /** Reports an error outside of requests, such as a file that could not be read again. */
  reportBackground(error: unknown, details: ErrorDetails): void;
}

type Report = Reporter['report'];

const ignore = (): void => undefined;

export function createErrorReporter(onError: OnError): Reporter {
  if (onError === false) return { report: ignore, reportForwarded: ignore, reportBackground: ignore };
  if (onError === undefined) {
    return { report: logError, reportForwarded: ignore, reportBackground: logBackgroundError };
  }
  const reportOrLog =
    (log: Report): Report =>
    (error, details) => {
      const onFailure = (failure: unknown): void => {
        log(error, details);
        writeLog('error', 'the option "onError" failed:', failure);
      };
      callListener(() => onError(error, details), onFailure);
    };
  const report = reportOrLog(logError);
  return { report, reportForwarded: report, reportBackground: reportOrLog(logBackgroundError) };
}

/** Calls a function of the application. An exception or a rejection of it goes to `onFailure`. */
function callListener(call: () => unknown, onFailure: (failure: unknown) => void): void {
  try {
    const returned = call();
    // Also the promise of another library or JavaScript context.
    if (returned !== undefined) Promise.resolve(returned).catch(onFailure);
  } catch (failure) {
    onFailure(failure);
  }
}

function logError(error: unknown, { operationName, path, transport }: ErrorDetails): void {
  const operation = operationName === undefined ? 'an operation' : `the operation "${operationName}"`;
  const place = path === undefined ? '' : ` at "${path.join('.')}"`;
  writeLog('error', `unexpected error in ${operation}${place} (${transport}):`, error);
}

function logBackgroundError(error: unknown): void {
  writeLog('error', 'error outside of operations:', error);
}

/** Writes a line to standard error, with the stacks of errors. All logging without the option `onError` uses it. */
export function writeLog(method: 'error' | 'warn', message: string, ...errors: readonly unknown[]): void {
  console[method](`espalier: ${printable(message)}`, ...errors);
}

/** Escapes control characters: clients send texts that would begin a line of the log, or control a terminal. */
const printable = (text: string): string =>
  text.replace(/\p{Cc}/gu, (character) => `\\x${character.charCodeAt(0).toString(16).padStart(2, '0')}`);

const INTERVAL_MILLISECONDS = 60_000;
const MAX_MESSAGES = 100;

/** The public function that reports errors, with the type and the code of its warnings. */
interface WarningSource {
  readonly owner: string;
  readonly type: string;
  readonly code: string;
}

/**
 * Writes errors as process warnings to standard error, one line each. An equal message is written at most
 * once a minute.
 */
export function createWarningLog({ owner, type, code }: WarningSource): (error: Error) => void {
  const written = new Map<string, { until: number; repeated: number }>();
  return (error) => {
    const message = messageOf(error).replace(`${owner}: `, '');
    const now = performance.now();
    const entry = written.get(message);
    if (entry !== undefined && now < entry.until) {
      entry.repeated++;
      return;
    }
    if (written.size >= MAX_MESSAGES) written.clear();
    written.set(message, { until: now + INTERVAL_MILLISECONDS, repeated: 0 });
    const repeated =
      entry === undefined || entry.repeated === 0 ? '' : ` (${entry.repeated} more times since then)`;
    process.emitWarning(`${owner}: ${message}${repeated}`, { type, code });
  };
}

/**
 * Creates the function that passes errors to the option `onError`, or writes them as warnings. It never throws: an
 * exception in a listener of a connection would end the process.
 */
export function createErrorListener(
  onError: ((error: Error) => unknown) | false | undefined,
  source: WarningSource,
): (error: Error) => void {
  if (onError === false) return () => undefined;
  const warn = createWarningLog(source);
  return onError === undefined ? warn : guardListener('onError', onError, warn);
}

/** Reports an exception or a rejection of a listener that is an option. */
export function guardListener<Args extends readonly unknown[]>(
  name: string,
  listener: (...args: Args) => unknown,
  report: (error: Error) => void,
): (...args: Args) => void {
  const onFailure = (cause: unknown): void => {
    const reason = cause instanceof Error ? messageOf(cause) : String(cause);
    report(new Error(`the option "${name}" failed: ${reason}`, { cause }));
  };
  return (...args) => callListener(() => listener(...args), onFailure);
}

/** Returns the message of an error. The AggregateError of several failed addresses has a code only. */
export function messageOf(error: Error): string {
  const { code } = error as NodeJS.ErrnoException;
  return printable((error.message || code || error.name).replace(/\s+/g, ' '));
}

// One-time notices about settings that are probably not intended.

const given = new Set<string>();

/** Logs one line, once per process and topic. */
function notice(topic: string, message: string): void {
  if (given.has(topic)) return;
  given.add(topic);
  warn(message);
}

function warn(message: string): void {
  writeLog('warn', message);
}

/**
 * Whether the environment says that it is one of development or of tests. Servers often run without NODE_ENV, so that
 * its absence must not show the texts of errors.
 */
export const isDevelopment = (): boolean => /^(?:development|test)$/.test(process.env['NODE_ENV'] ?? '');

/** Logs, once per process, the defaults that production servers usually change. */
export function noteProductionDefaults(page: string, options: readonly string[]): void {
  if (options.length === 0) return;
  notice(
    'production',
    `NODE_ENV is production, and these defaults are on: ${options.join(', ')}. See ${page}`,
  );
}

/** Logs, once per process, that the keys of mutations are not shared. */
export function noteLocalKeys(): void {
  notice(
    'idempotency',
    'NODE_ENV is production, and the option "idempotency" keeps its keys in the memory of this process: another process, or this one after a restart, executes a repeated mutation again. Set "idempotency.redis" to a Redis',
  );
}

/** Logs, once per process, a version of graphql that is not in the supported range. */
export function noteUnsupportedVersion(version: string, supported: string): void {
  notice(
    'graphql',
    `graphql ${version} is installed, but the supported versions are ${supported}. Small documents can block a server with an older version: run npm install graphql@latest`,
  );
}

/** Logs, once per process, that a protection is declared and not enforced. */
export function noteProtection(owner: string, problem: string): void {
  notice(problem, `${owner}: ${problem}`);
}

/** Logs, once per process, that the page of `inspect` is off. */
export function noteInspectOff(): void {
  notice('inspect', 'NODE_ENV is not development, so inspect is off. It needs the option "guard"');
}

/** Logs, once per process, that a client did not get a result. */
export function noteLostResult(): void {
  notice(
    'lost result',
    'graphqlHTTP cannot send a result: other code has begun the response while the operation ran, such as a middleware that limits the time of requests. Use the option "timeout" instead',
  );
}

/** Logs, once per process, that the files of the program can be downloaded. */
export function noteProgramFiles(path: string): void {
  notice(
    'program files',
    `staticFiles serves ${path}, which contains this program: everybody can read its sources, package.json and node_modules. Pass the directory of the public files, such as 'public'`,
  );
}

/** Logs that sockets do not use the options of the handler that has the same schema. */
export function noteBareSchema(): void {
  warn(
    'attachSubscriptions was given a schema for which there is a handler of graphqlHTTP. Sockets do not use its context, rootValue, limits and other options: pass the handler, attachSubscriptions(server, handler)',
  );
}

/** Logs, once per process, that the server that listens is not the one with subscriptions. */
export function noteOtherServer(message: string): void {
  notice('other server', message);
}

/**
 * Logs, once per process and reason, a refusal of which browsers show neither status nor text. Not in production, where
 * clients would choose what is logged.
 */
export function noteHidden(reason: 'path' | 'preflight' | 'cross-site' | number, message: string): void {
  if (process.env['NODE_ENV'] !== 'production') notice(`hidden ${reason}`, message);
}

/** Logs, once per process and field, that a resolver probably sends one query per item of a list. */
export function noteSingleLoads(coordinate: string, calls: number): void {
  notice(
    `loads ${coordinate}`,
    `The resolver of ${coordinate} was called ${calls} times in one execution, and its promises settled one by one. If each call is a query (N+1), use resolveMany or DataLoader: https://github.com/espalier-js/espalier/blob/main/docs/dataloader.md. extensions: { resolveMany: false } of the field turns this warning off`,
  );
}

/** Logs that a server accepts no upgrade of HTTP/1.1 and no WebSocket over HTTP/2. */
export function noteServerWithoutSockets(): void {
  warn(
    'attachSubscriptions was given a server for HTTP/2 only, to which clients cannot open WebSockets. Set webSockets: true, createServer(app, { http2: true, webSockets: true }), or let clients use server-sent events',
  );
}

/** Writes a line to the debug output of one area; `%s`, `%j` and `%O` are replaced by the values. */
type Logger = (format: string, ...values: readonly unknown[]) => void;

/** Loggers of refused requests, by area. A logger writes only if `DEBUG` names its area (`DEBUG=espalier:*`). */
export const debug: Record<'static' | 'graphql' | 'uploads' | 'subscriptions' | 'server', Logger> = {
  static: createLogger('espalier:static'),
  graphql: createLogger('espalier:graphql'),
  uploads: createLogger('espalier:uploads'),
  subscriptions: createLogger('espalier:subscriptions'),
  server: createLogger('espalier:server'),
};

/** Creates a logger. `debug.enable` sets the variable too. */
function createLogger(area: string): Logger {
  let write: Logger | undefined;
  return (format, ...given) => {
    if (process.env['DEBUG'] === undefined) return;
    const values = given.map((value) => (typeof value === 'string' ? printable(value) : value));
    try {
      write ??= packages.debug()(area);
      write(format, ...values);
    } catch {
      // The variable was set while the process had no free descriptor.
    }
  };
}

// The first line may be about a request, for which the process may have no free descriptor.
if (process.env['DEBUG'] !== undefined) packages.debug();

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
