import { createMemoryFiles } from '../src/static/sources/memory.ts';
import { createSeaFiles } from '../src/static/sources/sea.ts';
import { createZipFiles } from '../src/static/sources/zip.ts';
import type { MemoryFiles, SeaFilesOptions, StaticSource } from '../types/sources.ts';

export type * from '../types/sources.ts';

/**
 * Creates a source of files in memory, for `staticFiles`.
 *
 * @param files - contents by path, such as `{ 'index.html': '<h1>Hello</h1>' }`
 * @example
 * app.use(staticFiles(memoryFiles({ 'index.html': page }), { html: true }));
 */
export function memoryFiles(files: Readonly<Record<string, string | Uint8Array>> = {}): MemoryFiles {
  return createMemoryFiles(files);
}

/**
 * Creates a source of the files in a zip archive, for `staticFiles`. Entries are stored or deflated. The
 * archive is read again when it is replaced.
 *
 * @param file - a path or a `file:` URL
 * @throws Error (code `ERR_ZIP`) if the archive is damaged
 * @example
 * app.use(staticFiles(zipFiles('site.zip'), { html: true }));
 */
export function zipFiles(file: string | URL): StaticSource {
  return createZipFiles(file);
}

/**
 * Creates a source of the assets in a single executable application, for `staticFiles`.
 *
 * @throws Error if the process is not a single executable application
 * @example
 * // isSea is a function of node:sea.
 * app.use(staticFiles(isSea() ? seaFiles({ prefix: 'public/' }) : 'public', { html: true }));
 */
export function seaFiles(options?: SeaFilesOptions): StaticSource {
  return createSeaFiles(options);
}
