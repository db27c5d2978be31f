import { createMemoryFiles } from '../src/static/memory-files.ts';
import type { MemoryFiles } from '../types/sources.ts';

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
