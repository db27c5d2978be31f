// One-time notices about settings that are probably not intended.
import { writeLog } from './report-error.ts';

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

/** Logs, once per process, the defaults that production servers usually change. */
export function noteProductionDefaults(page: string, options: readonly string[]): void {
  if (options.length === 0) return;
  notice(
    'production',
    `NODE_ENV is production, and these defaults are on: ${options.join(', ')}. See ${page}`,
  );
}

/** Logs, once per process, a version of graphql that is not in the supported range. */
export function noteUnsupportedVersion(version: string, supported: string): void {
  notice(
    'graphql',
    `graphql ${version} is installed, but the supported versions are ${supported}. Small documents can block a server with an older version: run npm install graphql@latest`,
  );
}

/** Logs, once per process, that the page of `inspect` is off. */
export function noteInspectOff(): void {
  notice('inspect', 'NODE_ENV is production, so inspect is off. It needs the option "guard"');
}

/** Logs that sockets do not use the options of a handler that is mounted on the same path. */
export function noteBareSchema(path: string): void {
  warn(
    `attachSubscriptions was given a schema, but a handler of graphqlHTTP is mounted on ${path}. Sockets do not use its context, rootValue, limits and other options: pass the handler, attachSubscriptions(server, handler)`,
  );
}

/** Logs that a server accepts no upgrade of HTTP/1.1 and no WebSocket over HTTP/2. */
export function noteServerWithoutSockets(): void {
  warn(
    'attachSubscriptions was given a server for HTTP/2 only, to which clients cannot open WebSockets. Set webSockets: true, createServer(app, { http2: true, webSockets: true }), or let clients use server-sent events',
  );
}

/** Logs, once per process, that this version of Node cannot compress with dictionaries. */
export function noteNoDictionaries(version: string): void {
  notice(
    'dictionaries',
    `option "compress.dictionaries" of staticFiles has no effect with Node ${version}: it needs Node 22.19 or later, or 24.6 or later`,
  );
}
