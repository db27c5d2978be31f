import { localDeviceOf } from '../src/static/cache/local-device.ts';
import { isInPlace, load } from '../src/static/file/load.ts';
import { createSite } from '../src/static/handler.ts';
import { resolveStaticOptions } from '../src/static/options.ts';
import { resolveRoot } from '../src/static/root.ts';
import type { Middleware } from '../types/connect.ts';
import type { StaticFilesOptions } from '../types/static.ts';

export type * from '../types/static.ts';

/**
 * Serves the files of a directory: strong tags from their content, 304s and hot files from memory, never
 * staler than the request.
 *
 * @param dir - a path or `file:` URL; it must exist, else an error with code `ERR_STATIC_ROOT` is thrown here
 * @param options - a bare boolean is `{ html }`
 * @throws TypeError (code `ERR_OPTION`) for an unknown option or a wrong value
 * @example
 * app.use('/static', staticFiles('public'));
 * app.use(staticFiles('site', true));
 */
export function staticFiles(dir: string | URL, options?: boolean | StaticFilesOptions): Middleware {
  const root = resolveRoot(dir);
  const settings = resolveStaticOptions(options);
  const site = createSite(settings, {
    load: (key) => load(root, key, settings),
    isInPlace: (entry) => isInPlace(root, entry, settings),
    device: localDeviceOf(root),
  });
  return function staticFilesMiddleware(req, res, next) {
    site(req, res, next);
  };
}
