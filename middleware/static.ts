import { createHandler } from '../src/static/handler.ts';
import { resolveStaticOptions } from '../src/static/options.ts';
import { endWithout } from '../src/static/request.ts';
import { resolveRoot } from '../src/static/root.ts';
import { checkLink } from '../src/static/signed.ts';
import { isSource, SourceFiles } from '../src/static/source.ts';
import type { Middleware, NextFunction } from '../types/connect.ts';
import type { StaticSource } from '../types/sources.ts';
import type { StaticFilesOptions } from '../types/static.ts';

export { signUrl } from '../src/static/signed.ts';
export type * from '../types/sources.ts';
export type * from '../types/static.ts';

/**
 * Serves the files of a directory with strong ETags computed from their content. Hot files and 304 responses
 * come from memory, and by default no response is older than its request.
 *
 * @param dir - a path or a `file:` URL of a directory, or a source of files such as `memoryFiles`
 * of `espalier/sources`. The directory must exist, otherwise an error with code `ERR_STATIC_ROOT` is thrown, except with
 * the option `missing: 'allow'`
 * @param options - a boolean is short for `{ html }`
 * @throws TypeError (code `ERR_OPTION`) for an unknown option or a wrong value
 * @example
 * app.use('/static', staticFiles('public'));
 * app.use(staticFiles('site', true));
 */
export function staticFiles(
  dir: string | URL | StaticSource,
  options?: boolean | StaticFilesOptions,
): Middleware {
  const settings = resolveStaticOptions(options);
  const files = isSource(dir) ? new SourceFiles(dir) : resolveRoot(dir, settings);
  const handler = createHandler(files, settings);
  return function staticFilesMiddleware(req, res, next?: NextFunction) {
    const isRead = req.method === 'GET' || req.method === 'HEAD';
    if (settings.signed !== undefined && isRead && !checkLink(req, res, settings.signed)) return;
    // `createServer(staticFiles(dir))` passes no `next`.
    handler(req, res, next ?? endWithout(req, res));
  };
}
