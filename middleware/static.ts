import type { ServerResponse } from 'node:http';
import { optionError } from '../src/options/rules.ts';
import { STATIC_OPTIONS } from '../src/options/scopes.ts';
import { optional } from '../src/pages/optional.ts';
import { checkLink, limitLifetime, resolveSigned } from '../src/signed/signed.ts';
import { createHandler, sharedBy } from '../src/static/handler.ts';
import { resolveStaticOptions, type StaticSettings } from '../src/static/options.ts';
import { endWithout } from '../src/static/request.ts';
import { type RootDirectory, resolveRoot } from '../src/static/root.ts';
import { Roots } from '../src/static/roots.ts';
import { isSource, SourceFiles } from '../src/static/source.ts';
import type { ConnectRequest, NextFunction } from '../types/connect.ts';
import type { StaticSource } from '../types/sources.ts';
import type { RootChooser, StaticFilesHandler, StaticFilesOptions } from '../types/static.ts';

export { signUrl } from '../src/signed/signed.ts';
export type * from '../types/sources.ts';
export type * from '../types/static.ts';

/**
 * Serves the files of a directory with strong ETags computed from their content. Hot files and 304 responses
 * come from memory, and by default no response is older than its request.
 *
 * @param dir - a path or a `file:` URL of a directory, a source of files such as `memoryFiles`
 * of `espalier/sources`, or a function that chooses the directory of each request (option `roots`). The directory must exist, otherwise an error with code `ERR_STATIC_ROOT` is thrown, except with
 * the option `missing: 'allow'`
 * @param options - a boolean is short for `{ html }`
 * @throws TypeError (code `ERR_OPTION`) for an unknown option or a wrong value
 * @example
 * app.use('/static', staticFiles('public'));
 * app.use(staticFiles('site', true));
 */
export function staticFiles(
  dir: string | URL | StaticSource | RootChooser,
  options?: boolean | StaticFilesOptions,
): StaticFilesHandler {
  const settings = resolveStaticOptions(options);
  const files = typeof dir === 'function' ? dir : filesOf(dir, settings);
  const signed = resolveSigned(settings.signed);
  const shared = sharedBy(settings, {
    createPages: settings.pages && optional.pages().resolvePages(settings.pages),
    limitLifetime: signed && limitLifetime,
  });
  const handler =
    typeof files === 'function' ? new Roots(files, settings, shared) : createHandler(files, settings, shared);
  let isClosed = false;
  const close = (): void => {
    isClosed = true;
    handler.close();
  };
  return Object.assign(
    function staticFilesMiddleware(req: ConnectRequest, res: ServerResponse, next?: NextFunction): void {
      // `createServer(staticFiles(dir))` passes no `next`.
      const pass = next ?? endWithout(req, res);
      const isRead = req.method === 'GET' || req.method === 'HEAD';
      if (isClosed) pass();
      else if (signed === undefined || !isRead || checkLink(req, res, signed)) handler.handle(req, res, pass);
    },
    { close },
  );
}

function filesOf(dir: string | URL | StaticSource, settings: StaticSettings): RootDirectory | SourceFiles {
  if (settings.roots !== undefined)
    throw optionError(
      STATIC_OPTIONS,
      'option "roots" is for a function that chooses the directory of a request, but the argument "dir" is none; pass such a function',
    );
  return isSource(dir) ? new SourceFiles(dir) : resolveRoot(dir, settings);
}
