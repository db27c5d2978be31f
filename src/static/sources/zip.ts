import { closeSync, createReadStream, fstatSync, openSync, statSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { resolve } from 'node:path';
import { pipeline, type Readable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { crc32, createInflateRaw } from 'node:zlib';
import type { SourceRange, SourceStat, StaticSource } from '../../../types/sources.ts';
import { wrongArgument } from '../../options/resolve-options.ts';
import { isString } from '../../options/rules.ts';
import { ZIP_FILES } from '../../options/scopes.ts';
import { type FileVersion, fileVersionOf, sameVersion } from '../disk/file-version.ts';
import { DirectoryPaths, toSourcePath } from './tree.ts';
import { readZipIndex, type ZipEntry } from './zip-index.ts';

const LOCAL_HEADER_BYTES = 30;
const LOCAL_HEADER_SIGNATURE = 0x0403_4b50;

interface Archive {
  readonly version: FileVersion;
  readonly entries: ReadonlyMap<string, { readonly entry: ZipEntry; readonly stat: SourceStat }>;
  readonly directories: DirectoryPaths;
}

/** Creates a source of the files in a zip archive. The archive is read again when it is replaced. */
export function createZipFiles(file: string | URL): StaticSource {
  if (!isString(file) && !(file instanceof URL)) {
    throw wrongArgument(ZIP_FILES, 'file', file, 'a path or a file: URL');
  }
  const path = resolve(isString(file) ? file : fileURLToPath(file));
  let current = readArchive(path);

  function archive(): Archive {
    const stats = statSync(path, { bigint: true, throwIfNoEntry: false });
    // Between the deletion of an archive and its replacement, the old index is used: opening its files fails.
    if (stats !== undefined && !sameVersion(current.version, stats)) current = readArchive(path);
    return current;
  }

  return {
    stat(name) {
      const { entries, directories } = archive();
      return entries.get(name)?.stat ?? (directories.has(name) ? 'directory' : undefined);
    },
    async open(name, range) {
      const { version, entries } = archive();
      const found = entries.get(name);
      if (found === undefined)
        throw Object.assign(new Error(`no file ${name} in ${path}`), { code: 'ENOENT' });
      return openEntry(path, version, found.entry, range);
    },
    list: () => archive().entries.keys(),
  };
}

function readArchive(path: string): Archive {
  const fd = openSync(path, 'r');
  try {
    const version = fileVersionOf(fstatSync(fd, { bigint: true }));
    const entries = new Map<string, { entry: ZipEntry; stat: SourceStat }>();
    const directories = new DirectoryPaths();
    for (const entry of readZipIndex(fd, Number(version.size))) {
      const name = toSourcePath(entry.name);
      if (name === undefined) continue;
      // A new archive with the same entry keeps the version of its content.
      const stat = {
        size: entry.size,
        version: `${entry.crc}-${version.ino}-${version.mtimeNs}`,
        mtime: entry.mtime,
      };
      entries.set(name, { entry, stat });
      directories.add(name);
    }
    return { version, entries, directories };
  } finally {
    closeSync(fd);
  }
}

/** Streams a range of an entry. A deflated entry is decompressed from its start. */
async function openEntry(
  path: string,
  version: FileVersion,
  entry: ZipEntry,
  { start, end }: SourceRange,
): Promise<AsyncIterable<Uint8Array>> {
  const archive = await open(path, 'r');
  try {
    if (!sameVersion(version, await archive.stat({ bigint: true }))) throw changed(path);
    const header = Buffer.alloc(LOCAL_HEADER_BYTES);
    await archive.read(header, 0, header.length, entry.offset);
    if (header.readUInt32LE(0) !== LOCAL_HEADER_SIGNATURE) throw changed(path);
    const first = entry.offset + header.length + header.readUInt16LE(26) + header.readUInt16LE(28);
    // Closes the descriptor when the stream ends or is destroyed.
    const read = (from: number, bytes: number): Readable => {
      // For such a range `createReadStream` throws after it has taken the handle, which then can no longer be closed.
      if (bytes === 0 || from + bytes > Number(version.size)) throw damaged(entry);
      return createReadStream('', { fd: archive, start: from, end: from + bytes - 1 });
    };
    if (!entry.isDeflated) {
      return new EntryBytes(read(first + start, end - start + 1), entry, { start, end });
    }
    const inflated = pipeline(read(first, entry.storedBytes), createInflateRaw(), ignore);
    return new EntryBytes(inflated, entry, { start, end }, start);
  } catch (error) {
    await archive.close();
    throw error;
  }
}

/** The error of a stream is thrown to the code that iterates over it. */
function ignore(): void {}

/**
 * Bytes of an entry: skips bytes, limits the output to a range, and checks the CRC if the entry is read from
 * start to end.
 */
class EntryBytes implements AsyncIterable<Uint8Array> {
  readonly #bytes: Readable;
  readonly #entry: ZipEntry;
  readonly #range: SourceRange;
  readonly #skipped: number;

  constructor(bytes: Readable, entry: ZipEntry, range: SourceRange, skipped = 0) {
    this.#bytes = bytes;
    this.#entry = entry;
    this.#range = range;
    this.#skipped = skipped;
  }

  /** Closes the archive, also if nothing was read: a generator that was not started could not do it. */
  destroy(): void {
    this.#bytes.destroy();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array> {
    const { start, end } = this.#range;
    const { size, crc: expectedCrc } = this.#entry;
    const isWhole = start === 0 && end === size - 1;
    let position = start - this.#skipped;
    let crc = 0;
    for await (const chunk of this.#bytes as AsyncIterable<Buffer>) {
      const from = Math.max(start - position, 0);
      const part = chunk.subarray(Math.min(from, chunk.length), end + 1 - position);
      position += chunk.length;
      if (isWhole) crc = crc32(part, crc);
      // An entry that is longer than declared would be a decompression bomb.
      if (isWhole && (position > size || (position === size && crc !== expectedCrc))) {
        throw damaged(this.#entry);
      }
      if (part.length > 0) yield part;
      if (position > end) return;
    }
  }
}

function damaged({ name }: ZipEntry): Error {
  return Object.assign(new Error(`zipFiles: the entry ${JSON.stringify(name)} is damaged`), {
    code: 'ERR_ZIP',
  });
}

function changed(path: string): Error {
  return Object.assign(new Error(`zipFiles: ${path} was replaced`), { code: 'ENOENT' });
}
