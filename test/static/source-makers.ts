import { readdirSync, readFileSync, statSync } from 'node:fs';
import { open, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { memoryFiles } from '../../middleware/sources.ts';
import type { StaticSource } from '../../types/sources.ts';

/** Returns the regular files of a folder by their paths. */
function filesOf(folder: string): Map<string, { bytes: Buffer; mtime: Date }> {
  const names = readdirSync(folder, { recursive: true }).map(String);
  const files = names.filter((name) => statSync(join(folder, name)).isFile());
  return new Map(
    files.map((name) => [
      name,
      { bytes: readFileSync(join(folder, name)), mtime: statSync(join(folder, name)).mtime },
    ]),
  );
}

function memoryOf(folder: string): StaticSource {
  const source = memoryFiles();
  for (const [name, { bytes, mtime }] of filesOf(folder)) source.set(name, bytes, { mtime });
  return source;
}

/** A source of the user: asynchronous, with streams and with real files. */
export function streamsOf(folder: string): StaticSource {
  return {
    async stat(path) {
      const stats = await stat(join(folder, path), { bigint: true }).catch(() => undefined);
      if (stats?.isDirectory()) return 'directory';
      if (stats?.isFile() !== true) return undefined;
      return { size: Number(stats.size), version: `${stats.ino} ${stats.ctimeNs}`, mtime: stats.mtime };
    },
    async open(path, range) {
      const file = await open(join(folder, path));
      return file.createReadStream({ ...range, highWaterMark: 1000 });
    },
    list: () => [...filesOf(folder).keys()].map((name) => `/${name}`),
  };
}

/** Sources that have the files of a folder and their times. */
export const SOURCES: readonly (readonly [name: string, make: (folder: string) => string | StaticSource])[] =
  [
    ['a directory', (folder) => folder],
    ['files in memory', memoryOf],
    ['a source of streams', streamsOf],
  ];
