// One-time notices about settings that are probably not intended.

let noticeGiven = false;
let versionNoticeGiven = false;

/** Logs one line, once per process, about defaults that production servers usually change. */
export function noteProductionDefaults(page: string, options: readonly string[]): void {
  if (noticeGiven || options.length === 0) return;
  noticeGiven = true;
  console.warn(
    `espalier: NODE_ENV is production, and these defaults are on: ${options.join(', ')}. See ${page}`,
  );
}

/** Logs one line, once per process, about a version of graphql that is not in the supported range. */
export function noteUnsupportedVersion(version: string, supported: string): void {
  if (versionNoticeGiven) return;
  versionNoticeGiven = true;
  console.warn(
    `espalier: graphql ${version} is installed, but the supported versions are ${supported}. Small documents can block a server with an older version: run npm install graphql@latest`,
  );
}

/** Logs that sockets do not use the options of a handler that is mounted on the same path. */
export function noteBareSchema(path: string): void {
  console.warn(
    `espalier: attachSubscriptions was given a schema, but a handler of graphqlHTTP is mounted on ${path}. Sockets do not use its context, rootValue, limits and other options: pass the handler, attachSubscriptions(server, handler)`,
  );
}
