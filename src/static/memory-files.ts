import { randomUUID } from 'node:crypto';
import { types } from 'node:util';
import type { MemoryFiles, SourceStat } from '../../types/sources.ts';
import { wrongArgument } from '../options/rules.ts';
import { MEMORY_FILES } from '../options/scopes.ts';
import { isString } from '../options/values.ts';

interface Stored {
  readonly bytes: Buffer;
  readonly stat: SourceStat;
}

export function createMemoryFiles(files: Readonly<Record<string, string | Uint8Array>>): MemoryFiles {
  const stored = new Map<string, Stored>();
  /** The number of files below each directory. */
  const directories = new Map<string, number>();
  const count = (path: string, change: 1 | -1): void => {
    for (let end = path.lastIndexOf('/'); end > 0; end = path.lastIndexOf('/', end - 1)) {
      const directory = path.slice(0, end);
      const files = (directories.get(directory) ?? 0) + change;
      if (files > 0) directories.set(directory, files);
      else directories.delete(directory);
    }
  };
  // The ETag of a large file comes from its version, which must not repeat in another process with other files.
  const instance = randomUUID();
  let versions = 0;

  const source: MemoryFiles = {
    set(path, content, options) {
      const key = pathOf(path);
      if (!isString(content) && !types.isUint8Array(content)) {
        throw wrongArgument(MEMORY_FILES, path, content, 'a string or a Uint8Array');
      }
      const mtime = options?.mtime ?? new Date();
      if (!types.isDate(mtime)) throw wrongArgument(MEMORY_FILES, 'options.mtime', mtime, 'a Date');
      const bytes = isString(content)
        ? Buffer.from(content)
        : Buffer.from(content.buffer, content.byteOffset, content.byteLength);
      if (!stored.has(key)) count(key, 1);
      stored.set(key, {
        bytes,
        stat: { size: bytes.length, version: `${instance}-${++versions}`, mtime },
      });
    },
    delete(path) {
      const key = pathOf(path);
      const isDeleted = stored.delete(key);
      if (isDeleted) count(key, -1);
      return isDeleted;
    },
    stat: (path) => stored.get(path)?.stat ?? (directories.has(path) ? 'directory' : undefined),
    open(path, { start, end }) {
      const file = stored.get(path);
      if (file === undefined) throw Object.assign(new Error(`no file ${path} in memory`), { code: 'ENOENT' });
      return file.bytes.subarray(start, end + 1);
    },
    list: () => stored.keys(),
  };
  for (const [path, content] of Object.entries(files)) source.set(path, content);
  return source;
}

function pathOf(name: unknown): string {
  const path = isString(name) ? toSourcePath(name) : undefined;
  if (path === undefined)
    throw wrongArgument(MEMORY_FILES, 'path', name, "a path such as '/docs/index.html'");
  return path;
}

/** Converts a name such as `docs/a.html` to a path; undefined if no request can have this path. */
function toSourcePath(name: string): string | undefined {
  const path = name.startsWith('/') ? name : `/${name}`;
  const isUsual = !path.includes('\\') && !path.includes('\0');
  const segments = path.slice(1).split('/');
  return isUsual && segments.every((segment) => !['', '.', '..'].includes(segment)) ? path : undefined;
}
