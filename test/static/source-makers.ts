import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { open, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { crc32, deflateRawSync } from 'node:zlib';
import { memoryFiles, zipFiles } from '../../middleware/sources.ts';
import { createSeaFiles } from '../../src/static/sources/sea.ts';
import type { StaticSource } from '../../types/sources.ts';
import { makeFolder } from './fixture.ts';

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

/** Writes a zip archive with the times in extended timestamps. */
export function writeZip(
  path: string,
  files: Iterable<[string, { bytes: Buffer; mtime: Date }]>,
  options: { method: 0 | 8; comment?: string },
): void {
  const parts: Buffer[] = [];
  const directory: Buffer[] = [];
  let offset = 0;
  for (const [name, { bytes, mtime }] of files) {
    const data = options.method === 8 ? deflateRawSync(bytes) : bytes;
    const extra = Buffer.alloc(9);
    extra.writeUInt16LE(0x5455, 0);
    extra.writeUInt16LE(5, 2);
    extra.writeUInt8(1, 4);
    extra.writeInt32LE(Math.floor(mtime.getTime() / 1000), 5);
    const common = Buffer.alloc(26);
    common.writeUInt16LE(20, 0);
    common.writeUInt16LE(0x800, 2);
    common.writeUInt16LE(options.method, 4);
    common.writeUInt32LE(crc32(bytes), 10);
    common.writeUInt32LE(data.length, 14);
    common.writeUInt32LE(bytes.length, 18);
    common.writeUInt16LE(Buffer.byteLength(name), 22);
    common.writeUInt16LE(extra.length, 24);
    const local = Buffer.concat([Buffer.from('PK\x03\x04'), common, Buffer.from(name), extra, data]);
    const rest = Buffer.alloc(14);
    rest.writeUInt32LE(offset, 10);
    directory.push(Buffer.from('PK\x01\x02\x14\x00', 'latin1'), common, rest, Buffer.from(name), extra);
    parts.push(local);
    offset += local.length;
  }
  const entries = Buffer.concat(directory);
  const comment = Buffer.from(options.comment ?? '');
  const end = Buffer.alloc(18);
  end.writeUInt16LE(directory.length / 5, 4);
  end.writeUInt16LE(directory.length / 5, 6);
  end.writeUInt32LE(entries.length, 8);
  end.writeUInt32LE(offset, 12);
  end.writeUInt16LE(comment.length, 16);
  writeFileSync(path, Buffer.concat([...parts, entries, Buffer.from('PK\x05\x06'), end, comment]));
}

function zipOf(folder: string, method: 0 | 8): StaticSource {
  const path = join(makeFolder({}), 'files.zip');
  writeZip(path, filesOf(folder), { method });
  return zipFiles(path);
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

/** The functions of node:sea with the files of a folder as assets. Assets have no times. */
function seaOf(folder: string): StaticSource {
  const files = filesOf(folder);
  return createSeaFiles(
    { prefix: 'site/' },
    {
      isSea: () => true,
      getAssetKeys: () => ['other/x.txt', ...[...files.keys()].map((name) => `site/${name}`)],
      getRawAsset: (key) => new Uint8Array(files.get(key.slice('site/'.length))?.bytes ?? []).slice().buffer,
    },
  );
}

/** Sources that have the files of a folder and their times. */
export const SOURCES: readonly (readonly [name: string, make: (folder: string) => string | StaticSource])[] =
  [
    ['a directory', (folder) => folder],
    ['files in memory', memoryOf],
    ['a zip archive with stored files', (folder) => zipOf(folder, 0)],
    ['a zip archive with deflated files', (folder) => zipOf(folder, 8)],
    ['a source of streams', streamsOf],
  ];

export const ASSETS = seaOf;
