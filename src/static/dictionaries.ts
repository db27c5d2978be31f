import { createHash } from 'node:crypto';
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import { setImmediate } from 'node:timers/promises';
import { promisify } from 'node:util';
import zlib, { constants, type InputType } from 'node:zlib';
import { debug, noteNoDictionaries } from '../diagnostics/logging.ts';
import { findTag } from '../http/conditions.ts';
import { cacheByHeader, parseAcceptEncoding } from '../http/negotiation.ts';
import { encodedRepresentation, type Representation } from './cache.ts';
import type { Compressor, FileContent, Work } from './compress.ts';
import type { OpenedFile } from './load.ts';
import { isImmutable } from './options.ts';
import { RootDirectory, statOrUndefined, withOpen } from './root.ts';

/** A structured field with a byte sequence of 32 bytes (RFC 9842 §2.2). */
const AVAILABLE_DICTIONARY = /^\s*:([A-Za-z0-9+/]{43}=):\s*$/;
/** A structured field with a string: the name of a file. */
const DICTIONARY_ID = /^\s*"([\w.~-]{1,255})"\s*$/;
const HASH_IN_KEY = 12;

/** The dictionary that the client has, and the coding to use with it. */
interface Announced {
  readonly hash: string;
  readonly id: string;
  readonly coding: DictionaryCoding;
}

/** The codings of one loaded file that use earlier versions of the file as dictionaries. */
export class FileDeltas {
  readonly #compressor: Compressor;
  readonly #dictionaries: Dictionaries;
  readonly #content: FileContent;
  readonly #identity: Representation;
  readonly #folder: string;
  readonly #name: string;
  readonly #pattern: string | undefined;

  constructor(
    compressor: Compressor,
    dictionaries: Dictionaries,
    filePath: string,
    content: FileContent,
    identity: Representation,
  ) {
    this.#compressor = compressor;
    this.#dictionaries = dictionaries;
    this.#content = content;
    this.#identity = identity;
    this.#folder = filePath.slice(0, filePath.lastIndexOf('/') + 1);
    this.#name = filePath.slice(this.#folder.length);
    this.#pattern = patternOf(this.#name);
  }

  /** Returns undefined if the client has no known dictionary, or while the result is not ready. */
  select({ headers, method }: IncomingMessage, hasOtherEtag: boolean): Representation | undefined {
    const known = headers['if-none-match'];
    // Without a dictionary none of these codings is selected, and a condition is about the selected representation (RFC
    // 9110 §13.1.2): a cache would send bytes to clients that cannot decode them (RFC 9842 §6.2).
    const hash = AVAILABLE_DICTIONARY.exec(String(headers['available-dictionary']))?.[1];
    if (hash === undefined) return undefined;
    if (known !== undefined && !hasOtherEtag && this.#includesContent(known)) {
      const isItself = DICTIONARY_ID.exec(String(headers['dictionary-id']))?.[1] === this.#name;
      const tag = this.#findTag(known, String(headers['accept-encoding'] ?? ''), isItself ? '' : hash);
      return tag === undefined ? undefined : encodedRepresentation(this.#identity, 'dcb', tag, undefined);
    }
    // A range of a compressed body would be of little use, because only its whole is cached.
    if (headers.range !== undefined && method === 'GET' && this.#identity.metadata.acceptRanges)
      return undefined;
    const announced = this.#announcedBy(headers);
    return announced && this.#encode(announced);
  }

  /** Whether an ETag of this content, in any coding, is in the list: then the response may be a 304. */
  #includesContent(known: string): boolean {
    const { tag } = this.#identity;
    return tag !== undefined && known.includes(tag.slice(tag.indexOf('"'), -1));
  }

  /**
   * Finds an ETag of this content in a coding that the client accepts, with the dictionary that it has, as the condition
   * will find it. A client whose dictionary is the file itself has the content.
   */
  #findTag(known: string, accepted: string, hash: string): string | undefined {
    const end = hash === '' ? '"' : `-${hash.slice(0, HASH_IN_KEY)}"`;
    const base = this.#identity.tag?.slice(0, -1);
    const weightOf = parseAcceptEncoding(accepted);
    const isAccepted = (coding: string): boolean =>
      accepted.toLowerCase().includes(coding) && weightOf(coding) > 0;
    return findTag(known, (tag) =>
      ['dcb', 'dcz'].some(
        (coding) => tag.startsWith(`${base}-${coding}`) && tag.endsWith(end) && isAccepted(coding),
      ),
    );
  }

  #announcedBy(headers: IncomingHttpHeaders): Announced | undefined {
    // Only pages of the same origin may read the result anyway; the requests of others would cost work.
    const site = headers['sec-fetch-site'];
    if (site !== undefined && site !== 'same-origin') return undefined;
    const { 'accept-encoding': accepted, 'available-dictionary': hashes, 'dictionary-id': ids } = headers;
    const hash = AVAILABLE_DICTIONARY.exec(String(hashes))?.[1];
    const id = DICTIONARY_ID.exec(String(ids))?.[1];
    if (hash === undefined || id === undefined || typeof accepted !== 'string') return undefined;
    const coding = this.#dictionaries.codingFor(accepted);
    if (coding === undefined || patternOf(id) !== this.#pattern) return undefined;
    return { hash, id, coding };
  }

  #encode({ hash, id, coding }: Announced): Representation | undefined {
    const path = this.#folder + id;
    const file = this.#dictionaries.find(path, hash);
    if (file === undefined) return undefined;
    const { etag } = this.#content;
    const suffix = `${ENCODERS.get(coding)?.id}-${hash.slice(0, HASH_IN_KEY)}`;
    const body = this.#compressor.get(`${etag.slice(1, -1)}-${suffix}`, this.#workFor(coding, path, file));
    if (body === undefined || body === 'useless') return undefined;
    const tag = this.#identity.tag?.replace(/"$/, `-${suffix}"`);
    return encodedRepresentation(this.#identity, coding, tag, body);
  }

  #workFor(coding: DictionaryCoding, path: string, file: DictionaryFile): Work {
    return {
      content: this.#content,
      expectedRatio: 0.05,
      // A larger result would not be much smaller than one without a dictionary.
      maxRatio: 0.2,
      encode: async (bytes) => {
        const dictionary = await this.#dictionaries.read(path, file);
        if (dictionary === undefined) return undefined;
        const { magic, compress, params } = ENCODERS.get(coding) as Encoder;
        const body = await promisify(compress)(bytes, { params, chunkSize: CHUNK, dictionary });
        return Buffer.concat([magic, file.hash, body]);
      },
    };
  }
}

/**
 * Creates the dictionaries of a directory. Undefined if the option `compress.dictionaries` is off, or if this version of Node
 * cannot compress with dictionaries.
 */
export function createDictionaries(compressor: Compressor, root: RootDirectory): Dictionaries | undefined {
  const { dictionaries, maxFileBytes } = compressor.settings;
  if (dictionaries === undefined) return undefined;
  const codings = availableCodings();
  if (codings.length === 0) {
    noteNoDictionaries(process.version);
    return undefined;
  }
  const roots = [root, ...dictionaries.map((path) => new RootDirectory(path))];
  return new Dictionaries(roots, maxFileBytes, codings, (key, task) => compressor.schedule(key, task));
}

/**
 * Returns the value of `Use-As-Dictionary`; undefined for files that are not immutable or whose name contains no hash.
 *
 * @param filePath - the path below the root, with slashes
 */
export function dictionaryHeader(filePath: string, cacheControl: string | undefined): string | undefined {
  const name = filePath.slice(filePath.lastIndexOf('/') + 1);
  const pattern = patternOf(name);
  if (pattern === undefined || !isPublicAndImmutable(cacheControl)) return undefined;
  // The pattern is relative to the URL of the file, so it is right below every mount path and proxy.
  return `match="${pattern}", id="${name}"`;
}

/** A delta to a private file could reveal its content, and one to a changing file has no fresh dictionary. */
export function isPublicAndImmutable(cacheControl = ''): boolean {
  return isImmutable(cacheControl) && !/\b(?:private|no-store)\b/.test(cacheControl);
}

/** `*` in the header does not include these codings: a client without the dictionary may send it. */
function bestCoding(header: string, codings: readonly DictionaryCoding[]): DictionaryCoding | undefined {
  const weightOf = parseAcceptEncoding(header);
  const named = header.toLowerCase();
  return codings
    .filter((coding) => named.includes(coding) && weightOf(coding) > 0)
    .sort((a, b) => weightOf(b) - weightOf(a))[0];
}

/** A content coding with a dictionary: Brotli or Zstandard (RFC 9842 §4 and §5). */
type DictionaryCoding = 'dcb' | 'dcz';

interface Encoder {
  /** The bytes before the hash of the dictionary. */
  readonly magic: Buffer;
  readonly compress: Compress;
  readonly compressSync: CompressSync;
  readonly params: Readonly<Record<number, number>>;
  /** Identifies the output, with the dictionary and the content. */
  readonly id: string;
}

type Compress = (
  input: InputType,
  options: { params: Record<number, number>; chunkSize: number; dictionary: Buffer },
  done: (error: Error | null, result: Buffer) => void,
) => void;

type CompressSync = (input: InputType, options: { dictionary: Buffer }) => Buffer;

// @types/node knows neither zstd nor dictionaries.
interface Functions {
  readonly brotliCompress: Compress;
  readonly brotliCompressSync: CompressSync;
  readonly zstdCompress?: Compress;
  readonly zstdCompressSync?: CompressSync;
}

const CHUNK = 64 * 1024;
const { brotliCompress, zstdCompress, brotliCompressSync, zstdCompressSync }: Functions = Object(zlib);
const { ZSTD_c_compressionLevel: ZSTD_LEVEL = 100 }: Readonly<Record<string, number>> = Object(constants);
const { brotli, zstd }: Readonly<Record<string, string | undefined>> = process.versions;

const BROTLI: Encoder = {
  magic: Buffer.from('ff444342', 'hex'),
  compress: brotliCompress,
  compressSync: brotliCompressSync,
  params: { [constants.BROTLI_PARAM_QUALITY]: 11 },
  id: `dcb11.${brotli}`.replace(/[^\w.]/g, ''),
};
const ZSTD: Encoder | undefined = zstdCompress &&
  zstdCompressSync && {
    magic: Buffer.from('5e2a4d1820000000', 'hex'),
    compress: zstdCompress,
    compressSync: zstdCompressSync,
    params: { [ZSTD_LEVEL]: 19 },
    id: `dcz19.${zstd}`.replace(/[^\w.]/g, ''),
  };

const ENCODERS: ReadonlyMap<DictionaryCoding, Encoder> = new Map([
  ['dcb', BROTLI],
  ...(ZSTD === undefined ? [] : [['dcz', ZSTD] as const]),
]);

/**
 * Returns the codings that this version of Node can create. Versions that do not know the option `dictionary`
 * ignore it, so the function compresses a few bytes to find out.
 */
export function availableCodings(): readonly DictionaryCoding[] {
  const bytes = Buffer.from(Array.from({ length: 64 }, (_, index) => (index * index * 37) % 251));
  return [...ENCODERS.keys()].filter((coding) => {
    const { compressSync } = ENCODERS.get(coding) as Encoder;
    return compressSync(bytes, { dictionary: bytes }).length < bytes.length / 2;
  });
}

/** A file of one of the directories, whose bytes have the given SHA-256. */
interface DictionaryFile {
  readonly root: RootDirectory;
  readonly hash: Buffer;
}

interface Entry {
  files: readonly DictionaryFile[];
  checkedAt: number;
}

// Entries of about 200 bytes each.
const MAX_ENTRIES = 1024;
// A new deployment may add a file.
const RECHECK_MS = 10_000;
// Hashing a slice blocks the event loop for less than a millisecond.
const SLICE = 256 * 1024;

/** The versions of files that may be dictionaries: those of the served directory and of previous builds. */
export class Dictionaries {
  /** Selects the coding for a value of `Accept-Encoding`. */
  readonly codingFor: (acceptEncoding: string) => DictionaryCoding | undefined;
  readonly #roots: readonly RootDirectory[];
  readonly #maxFileBytes: number;
  readonly #schedule: Compressor['schedule'];
  readonly #entries = new Map<string, Entry>();
  #isChecking = false;

  constructor(
    roots: readonly RootDirectory[],
    maxFileBytes: number,
    codings: readonly DictionaryCoding[],
    schedule: Compressor['schedule'],
  ) {
    this.codingFor = cacheByHeader((header) => bestCoding(header, codings));
    this.#roots = roots;
    this.#maxFileBytes = maxFileBytes;
    this.#schedule = schedule;
  }

  /**
   * Finds the file with a path below a root and a SHA-256 in base64. Hashes new files in the background, so
   * the first call for a path returns undefined.
   */
  find(filePath: string, hash: string): DictionaryFile | undefined {
    const entry = this.#entries.get(filePath);
    if (entry === undefined || performance.now() - entry.checkedAt > RECHECK_MS) {
      this.#checkName(filePath);
    }
    return entry?.files.find((file) => file.hash.toString('base64') === hash);
  }

  /** Reads the bytes of a dictionary; undefined if they have changed. */
  async read(filePath: string, { root, hash }: DictionaryFile): Promise<Buffer | undefined> {
    const bytes = await this.#readFrom(root, filePath);
    return bytes !== undefined && (await sha256(bytes)).equals(hash) ? bytes : undefined;
  }

  /**
   * Schedules the hashing of a file that exists. Clients may announce any number of names, whose tasks would
   * keep other work waiting. Checks one name at a time: a file system that hangs keeps one thread.
   */
  #checkName(filePath: string): void {
    if (this.#isChecking) return;
    this.#isChecking = true;
    const settle = (exists: boolean): void => {
      this.#isChecking = false;
      if (exists) this.#schedule(`dictionary ${filePath}`, () => this.#check(filePath));
      else this.#entries.delete(filePath);
    };
    this.#exists(filePath).then(settle, () => settle(false));
  }

  async #exists(filePath: string): Promise<boolean> {
    for (const root of this.#roots) {
      const stats = await statOrUndefined(root.pathOf(filePath)).catch(() => undefined);
      if (stats?.isFile() === true) return true;
    }
    return false;
  }

  async #check(filePath: string): Promise<number> {
    const startedAt = performance.now();
    const files: DictionaryFile[] = [];
    for (const root of this.#roots) {
      const bytes = await this.#readFrom(root, filePath);
      if (bytes !== undefined) files.push({ root, hash: await sha256(bytes) });
    }
    if (this.#entries.size >= MAX_ENTRIES) this.#entries.clear();
    this.#entries.set(filePath, { files, checkedAt: performance.now() });
    return performance.now() - startedAt;
  }

  /** Reads a file inside a root; undefined if it does not exist or cannot be read. */
  async #readFrom(root: RootDirectory, filePath: string): Promise<Buffer | undefined> {
    const path = root.pathOf(filePath);
    try {
      const stats = await statOrUndefined(path);
      if (stats?.isFile() !== true || stats.size > this.#maxFileBytes) return undefined;
      const read = (file: OpenedFile): Promise<Buffer | undefined> => file.read(Number(stats.size));
      return await withOpen(root, path, stats, { followSymlinks: false }, read);
    } catch (error) {
      debug.static('cannot read the dictionary %s: %s', path, error);
      return undefined;
    }
  }
}

async function sha256(bytes: Buffer): Promise<Buffer> {
  const hash = createHash('sha256');
  for (let start = 0; start < bytes.length; start += SLICE) {
    hash.update(bytes.subarray(start, start + SLICE));
    if (bytes.length > SLICE) await setImmediate();
  }
  return hash.digest();
}

// Rollup, Vite and esbuild use eight characters of base64url or base32; webpack, Parcel and Next.js use 8 to
// 64 hexadecimal digits, and may add a word such as `chunk`.
const HASH = /(?<=[^/][-._])(?:[\w-]{8}|[0-9a-f]{16,64})(?=(?:\.(?:chunk|bundle|module|min))?\.\w{1,8}$)/;

// Needs no escapes in a URL, a URLPattern and a structured field. A dotfile is never a dictionary.
const PLAIN_NAME = /^[\w~-][\w.~-]{0,254}$/;

/**
 * Returns the pattern of all versions of a file, relative to its directory: `app-*.js` for
 * `app-3f2a91bc.js`. Undefined for a name without a hash.
 */
export function patternOf(name: string): string | undefined {
  if (!PLAIN_NAME.test(name)) return undefined;
  const pattern = name.replace(HASH, '*');
  return pattern === name ? undefined : pattern;
}
