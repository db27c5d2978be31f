import { createVariantFactory } from '../src/static/compression/compressed-variants.ts';
import { Compressor } from '../src/static/compression/compressor.ts';
import { loadFile, stillResolves } from '../src/static/file/load.ts';
import { createStaticHandler } from '../src/static/handler.ts';
import { resolveStaticOptions } from '../src/static/options.ts';
import { assertPages, resolveRoot } from '../src/static/root.ts';
import type { Middleware } from '../types/connect.ts';
import type { StaticFilesOptions } from '../types/static.ts';

export type * from '../types/static.ts';

/**
 * Serves the files of a directory with strong ETags computed from their content. Hot files and 304 responses come from memory, and
 * by default no response is older than its request.
 *
 * @param dir - a path or a `file:` URL. The directory must exist, otherwise an error with code `ERR_STATIC_ROOT` is thrown
 * @param options - a boolean is short for `{ html }`
 * @throws TypeError (code `ERR_OPTION`) for an unknown option or a wrong value
 * @example
 * app.use('/static', staticFiles('public'));
 * app.use(staticFiles('site', true));
 */
export function staticFiles(dir: string | URL, options?: boolean | StaticFilesOptions): Middleware {
  const root = resolveRoot(dir);
  const settings = resolveStaticOptions(options);
  assertPages(root, settings);
  const variants = settings.compress && createVariantFactory(new Compressor(settings.compress));
  const handler = createStaticHandler(settings, {
    load: (urlPath, { isPopular }) => loadFile(root, urlPath, settings, { isPopular, variants }),
    stillResolves: (file) => stillResolves(root, file, settings),
    localDevice: root.localDevice,
    mounts: root.mounts,
  });
  return function staticFilesMiddleware(req, res, next) {
    handler(req, res, next);
  };
}
