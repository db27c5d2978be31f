import { readSync } from 'node:fs';

/** An entry of a zip archive. */
export interface ZipEntry {
  readonly name: string;
  /** The position of the local header. */
  readonly offset: number;
  /** Bytes in the archive. */
  readonly storedBytes: number;
  readonly size: number;
  readonly isDeflated: boolean;
  readonly crc: number;
  readonly mtime: Date | undefined;
}

const END_SIGNATURE = 0x0605_4b50;
const END_BYTES = 22;
const ZIP64_LOCATOR_SIGNATURE = 0x0706_4b50;
const ZIP64_LOCATOR_BYTES = 20;
const ZIP64_END_SIGNATURE = 0x0606_4b50;
const ENTRY_SIGNATURE = 0x0201_4b50;
const ENTRY_BYTES = 46;
const MAX_COMMENT = 0xffff;
const ENCRYPTED = 1;
const MAX_DIRECTORY_BYTES = 256 << 20;
const STORED = 0;
const DEFLATED = 8;

/** Reads the directory of a zip archive (APPNOTE 6.3.10 §4.3). Throws if the archive is damaged. */
export function readZipIndex(fd: number, archiveBytes: number): ZipEntry[] {
  const { count, bytes, offset } = findDirectory(fd, archiveBytes);
  if (bytes > MAX_DIRECTORY_BYTES || offset + bytes > archiveBytes)
    throw damaged('its directory is outside the file');
  const directory = readExactly(fd, offset, bytes);
  const entries: ZipEntry[] = [];
  let position = 0;
  for (let i = 0; i < count; i++) {
    if (position + ENTRY_BYTES > bytes || directory.readUInt32LE(position) !== ENTRY_SIGNATURE) {
      throw damaged('its directory is incomplete');
    }
    const nameBytes = directory.readUInt16LE(position + 28);
    const extraBytes = directory.readUInt16LE(position + 30);
    const end = position + ENTRY_BYTES + nameBytes + extraBytes + directory.readUInt16LE(position + 32);
    if (end > bytes) throw damaged('its directory is incomplete');
    const entry = readEntry(directory.subarray(position, end), nameBytes, extraBytes);
    if (entry !== undefined) entries.push(entry);
    position = end;
  }
  return entries;
}

function findDirectory(fd: number, archiveBytes: number): { count: number; bytes: number; offset: number } {
  const tailBytes = Math.min(archiveBytes, END_BYTES + MAX_COMMENT + ZIP64_LOCATOR_BYTES);
  const tail = readExactly(fd, archiveBytes - tailBytes, tailBytes);
  for (let at = tailBytes - END_BYTES; at >= 0; at--) {
    if (tail.readUInt32LE(at) !== END_SIGNATURE) continue;
    if (at + END_BYTES + tail.readUInt16LE(at + 20) !== tailBytes) continue;
    const locator = at - ZIP64_LOCATOR_BYTES;
    if (locator >= 0 && tail.readUInt32LE(locator) === ZIP64_LOCATOR_SIGNATURE) {
      return readZip64End(fd, toNumber(tail.readBigUInt64LE(locator + 8)), archiveBytes);
    }
    return {
      count: tail.readUInt16LE(at + 10),
      bytes: tail.readUInt32LE(at + 12),
      offset: tail.readUInt32LE(at + 16),
    };
  }
  throw damaged('it has no directory');
}

function readZip64End(fd: number, position: number, archiveBytes: number): ReturnType<typeof findDirectory> {
  if (position + 56 > archiveBytes) throw damaged('its directory is outside the file');
  const end = readExactly(fd, position, 56);
  if (end.readUInt32LE(0) !== ZIP64_END_SIGNATURE) throw damaged('it has no directory');
  const [count, bytes, offset] = [32, 40, 48].map((at) => toNumber(end.readBigUInt64LE(at)));
  return { count: count as number, bytes: bytes as number, offset: offset as number };
}

/** Returns undefined for directories, encrypted files and unknown methods. */
function readEntry(header: Buffer, nameBytes: number, extraBytes: number): ZipEntry | undefined {
  const method = header.readUInt16LE(10);
  const name = header.toString('utf8', ENTRY_BYTES, ENTRY_BYTES + nameBytes);
  const isEncrypted = (header.readUInt16LE(8) & ENCRYPTED) !== 0;
  if (name.endsWith('/') || isEncrypted || (method !== STORED && method !== DEFLATED)) return undefined;
  const extra = readExtra(header.subarray(ENTRY_BYTES + nameBytes, ENTRY_BYTES + nameBytes + extraBytes));
  let at = 0;
  // A field of four bytes that is full has its value in the zip64 extra field, in this order.
  const large = (value: number): number => {
    if (value !== 0xffff_ffff || extra.zip64 === undefined) return value;
    if (at + 8 > extra.zip64.length) throw damaged(`the entry ${JSON.stringify(name)} is incomplete`);
    at += 8;
    return toNumber(extra.zip64.readBigUInt64LE(at - 8));
  };
  const size = large(header.readUInt32LE(24));
  const storedBytes = large(header.readUInt32LE(20));
  const offset = large(header.readUInt32LE(42));
  const mtime = extra.mtime ?? dosTime(header.readUInt16LE(14), header.readUInt16LE(12));
  return {
    name,
    offset,
    storedBytes,
    size,
    isDeflated: method === DEFLATED,
    crc: header.readUInt32LE(16),
    mtime,
  };
}

function readExtra(extra: Buffer): { zip64: Buffer | undefined; mtime: Date | undefined } {
  let zip64: Buffer | undefined;
  let mtime: Date | undefined;
  for (let at = 0; at + 4 <= extra.length; ) {
    const id = extra.readUInt16LE(at);
    const field = extra.subarray(at + 4, at + 4 + extra.readUInt16LE(at + 2));
    if (id === 1) zip64 = field;
    // The extended timestamp: a byte of flags, then seconds since the epoch.
    if (id === 0x5455 && field.length >= 5 && ((field[0] as number) & 1) === 1) {
      mtime = new Date(field.readInt32LE(1) * 1000);
    }
    at += 4 + field.length;
  }
  return { zip64, mtime };
}

/**
 * Converts a time of MS-DOS, which has no time zone; undefined for the start of 1980, which build tools
 * write.
 */
function dosTime(date: number, time: number): Date | undefined {
  if (date <= 0x21) return undefined;
  const day = [1980 + (date >> 9), ((date >> 5) & 15) - 1, date & 31] as const;
  return new Date(...day, time >> 11, (time >> 5) & 63, (time & 31) * 2);
}

function readExactly(fd: number, position: number, length: number): Buffer {
  const buffer = Buffer.alloc(length);
  let filled = 0;
  while (filled < length) {
    const bytesRead = readSync(fd, buffer, filled, length - filled, position + filled);
    if (bytesRead === 0) throw damaged('it is incomplete');
    filled += bytesRead;
  }
  return buffer;
}

function toNumber(value: bigint): number {
  if (value > BigInt(Number.MAX_SAFE_INTEGER)) throw damaged('a size is too large');
  return Number(value);
}

function damaged(reason: string): Error {
  return Object.assign(new Error(`zipFiles: the file is not a usable zip archive: ${reason}`), {
    code: 'ERR_ZIP',
  });
}
