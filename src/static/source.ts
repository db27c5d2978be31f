import { createHash } from 'node:crypto';
import { Stats } from 'node:fs';
import type { ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { types } from 'node:util';
import type { SourceBytes, SourceStat, StaticSource } from '../../types/sources.ts';
import type { Precompressed } from '../../types/static.ts';
import { type ByteRange, toLastModified } from '../http/conditions.ts';
import {
  destroyIncomplete,
  HTTP2_CHUNK,
  isQueued,
  isResourceError,
  toError,
  whenFirst,
} from '../http/reply.ts';
import {
  isCount,
  isFunction,
  isObject,
  isString,
  isThenable,
  optionError,
  wrongArgument,
  wrongReturnValue,
} from '../options/rules.ts';
import { STATIC_OPTIONS } from '../options/scopes.ts';
import { budgetFor, type CacheEntry, FileCache, type Waiter } from './cache.ts';
import { Compressor, createCodingFactory } from './compress.ts';
import { isCopyOf } from './copies.ts';
import { createCacheHandler, type StaticHandler } from './handler.ts';
import { COPY_EXTENSIONS, candidatesFor } from './load.ts';
import { mediaTypeOf } from './media-types.ts';
import type { StaticSettings } from './options.ts';
import { isAborted, isFinished, sendOutOfResources, setResponseHeaders } from './reply.ts';
import {
  type CodingFactory,
  etagForCoding,
  type LoadedFile,
  type LoadResult,
  type Metadata,
  Representation,
} from './representation.ts';
import type { RequestContext, StreamPlan } from './respond.ts';
import { isNotFoundError, type NotFound, notFound } from './root.ts';
import { etagFromDigest, etagOfBytes } from './version.ts';

/** Creates the handler of a `staticFiles` middleware for the files of a source. */
export function createSourceHandler(given: StaticSource, settings: StaticSettings): StaticHandler {
  const source = checkedSource(given);
  const { compress } = settings;
  if (compress?.dictionaries !== undefined) {
    throw optionError(
      STATIC_OPTIONS,
      'option "compress.dictionaries" is on, but the files come from a source; it works with a directory only',
    );
  }
  const codingFactory = compress && createCodingFactory(new Compressor(compress), undefined);
  const cache = new FileCache(budgetFor(settings.cache));
  return createCacheHandler({
    settings,
    cache,
    checker: new SourceChecker({ source, settings, codingFactory }, cache),
    sendBody: (request, plan, retry) => sendFromSource(source, request, plan, retry),
  });
}

/** Whether the first argument of `staticFiles` is a source. Throws if a function is missing. */
export function isSource(argument: unknown): argument is StaticSource {
  if (!isObject(argument) || argument instanceof URL) return false;
  for (const name of ['stat', 'open', 'list']) {
    if (isFunction(argument[name])) continue;
    const accepted = `a path, a file: URL, or a source with the functions stat, open and list; ${name} is missing`;
    throw wrongArgument(STATIC_OPTIONS, 'dir', argument, accepted);
  }
  return true;
}

// Sufficient for a file that is replaced while it is read.
const MAX_ATTEMPTS = 16;
// Milliseconds after which requests do not wait for a running load any more: the source may have lost its
// connection, and the load may never end.
const STALLED_MS = 30_000;

interface Load {
  readonly result: Promise<LoadResult>;
  readonly startedAt: number;
}

/**
 * Checks cache entries with the `stat` of a source. A source whose `stat` is synchronous is checked
 * immediately. Requests for a file that is not cached share one load, and check its result again: it may be
 * older than they are.
 */
export class SourceChecker {
  readonly #loader: SourceLoader;
  readonly #cache: FileCache;
  readonly #dependencies = new WeakMap<LoadResult, readonly SourceDependency[]>();
  readonly #loads = new Map<CacheEntry, Load>();

  constructor(loader: SourceLoader, cache: FileCache) {
    this.#loader = loader;
    this.#cache = cache;
  }

  /** Checks the entry of a request, then calls its `onChecked`. */
  check(waiter: Waiter): void {
    const { entry } = waiter;
    const { file } = entry;
    let isCurrent: boolean | Promise<boolean>;
    try {
      isCurrent = file !== undefined && this.#isCurrent(file);
    } catch (error) {
      waiter.onChecked(error, undefined);
      return;
    }
    if (file !== undefined && isCurrent === true) {
      this.#keepFresh(entry);
      waiter.onChecked(undefined, file);
      return;
    }
    this.#find(entry, isCurrent).then(
      (result) => waiter.onChecked(undefined, result),
      (error: unknown) => waiter.onChecked(error, undefined),
    );
  }

  async #find(entry: CacheEntry, isCurrent: boolean | Promise<boolean>): Promise<LoadResult> {
    const cached = entry.file;
    if (cached !== undefined && (await isCurrent) && entry.file === cached) {
      this.#keepFresh(entry);
      return cached;
    }
    for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
      // A load that has found no file has removed the entry.
      const current = this.#cache.getOrCreate(entry.urlPath);
      const running = this.#runningLoad(current);
      const result = await (running ?? this.#load(current));
      if (running === undefined || (await this.#isCurrent(result))) return result;
    }
    return { kind: 'busy' };
  }

  #runningLoad(entry: CacheEntry): Promise<LoadResult> | undefined {
    const load = this.#loads.get(entry);
    return load === undefined || performance.now() - load.startedAt > STALLED_MS ? undefined : load.result;
  }

  #load(entry: CacheEntry): Promise<LoadResult> {
    const result = this.#loadRepeatedly(entry).finally(() => {
      if (this.#loads.get(entry) === load) this.#loads.delete(entry);
    });
    const load: Load = { result, startedAt: performance.now() };
    this.#loads.set(entry, load);
    return result;
  }

  async #loadRepeatedly(entry: CacheEntry): Promise<LoadResult> {
    this.#cache.invalidate(entry);
    try {
      for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
        const loaded = await loadSourceFile(this.#loader, entry.urlPath).catch((error: unknown) => {
          // The file was deleted between `stat` and `open`.
          if (!isNotFoundError(error)) throw error;
          return undefined;
        });
        if (loaded === undefined) continue;
        const { result, dependencies } = loaded;
        this.#dependencies.set(result, dependencies);
        if (result.kind === 'file') {
          this.#cache.set(entry, result);
          this.#keepFresh(entry);
        }
        return result;
      }
      return { kind: 'busy' };
    } finally {
      // Keeps the entry of a file.
      this.#cache.release(entry);
    }
  }

  /** Whether the source still has the versions that led to a result. */
  #isCurrent(result: LoadResult): boolean | Promise<boolean> {
    const dependencies = this.#dependencies.get(result) ?? [];
    const pending: Promise<boolean>[] = [];
    for (const { path, version } of dependencies) {
      const stat = this.#loader.source.stat(path);
      if (stat instanceof Promise) {
        const isSame = stat.then((result) => versionOf(result) === version);
        // Nothing awaits it if a later path has changed, or if its `stat` throws.
        isSame.catch(() => undefined);
        pending.push(isSame);
      } else if (versionOf(stat) !== version) return false;
    }
    if (pending.length === 0) return true;
    return Promise.all(pending).then((results) => results.every((isSame) => isSame));
  }

  #keepFresh(entry: CacheEntry): void {
    const { revalidateAfter } = this.#loader.settings.cache;
    entry.freshUntil = revalidateAfter === 0 ? 0 : performance.now() + revalidateAfter;
  }
}

/** Arguments of `loadSourceFile` in addition to the path. */
interface SourceLoader {
  readonly source: StaticSource;
  readonly settings: StaticSettings;
  readonly codingFactory: CodingFactory | undefined;
}

/** Finds and reads the file for a URL path. Undefined if it changed meanwhile. */
async function loadSourceFile(
  loader: SourceLoader,
  urlPath: string,
): Promise<{ result: LoadResult; dependencies: readonly SourceDependency[] } | undefined> {
  const { source, settings } = loader;
  const { found, dependencies } = await resolveSourceFile(source, urlPath, settings);
  if (found.kind !== 'file') return { result: found, dependencies };
  const content = await readContent(loader, found.path, found.stat);
  if (content === undefined) return undefined;
  const copies = await findCopies(loader, content);
  const result = assemble(loader, content, copies);
  return { result, dependencies: [...dependencies, ...copies.dependencies] };
}

/** Reads a file, or hashes it if it is too large for the cache. */
async function readContent(
  { source, settings }: SourceLoader,
  path: string,
  stat: SourceStat,
): Promise<SourceContent | undefined> {
  const { size } = stat;
  const { cache, maxEagerBodyBytes, maxEagerHashBytes } = settings;
  let body: Buffer | undefined;
  let contentEtag: string | undefined;
  if (size <= Math.min(maxEagerBodyBytes, cache.maxBytes ?? Number.POSITIVE_INFINITY)) {
    body = await readAll(source, path, size);
    if (body === undefined) return undefined;
    contentEtag = await etagOfBytes(body);
  } else if (size <= maxEagerHashBytes && settings.etag === 'content') {
    contentEtag = await hashAll(source, path, size);
    if (contentEtag === undefined) return undefined;
  }
  if (versionOf(await source.stat(path)) !== versionOf(stat)) return undefined;
  return { path, stat, body, contentEtag };
}

interface Copies {
  readonly contents: readonly (SourceContent & { readonly coding: Precompressed })[];
  readonly dependencies: readonly SourceDependency[];
}

/** Finds compressed copies. Only copies of files in memory are compared with their source, and used. */
async function findCopies(loader: SourceLoader, { path, body }: SourceContent): Promise<Copies> {
  const contents: (SourceContent & { coding: Precompressed })[] = [];
  const dependencies: SourceDependency[] = [];
  for (const coding of loader.settings.precompressed) {
    const copyPath = path + COPY_EXTENSIONS[coding];
    const stat = await loader.source.stat(copyPath);
    dependencies.push({ path: copyPath, version: versionOf(stat) });
    if (stat === undefined || stat === 'directory' || body === undefined) continue;
    const copy = await readContent(loader, copyPath, stat);
    const isUsable = copy?.body !== undefined && (await isCopyOf(copy.body, body, coding));
    if (isUsable) contents.push({ ...copy, coding });
  }
  return { contents, dependencies };
}

function assemble(loader: SourceLoader, content: SourceContent, copies: Copies): LoadedFile {
  const { settings } = loader;
  const { path, stat, contentEtag } = content;
  const type = mediaTypeOf(path);
  const accepts =
    copies.contents.length === 0 &&
    contentEtag !== undefined &&
    loader.codingFactory?.accepts(type, stat.size);
  const factory = accepts === true ? loader.codingFactory : undefined;
  const common = {
    type,
    cacheControl: settings.cacheControl(path),
    vary: copies.contents.length > 0 || factory !== undefined ? 'Accept-Encoding' : undefined,
    acceptRanges: settings.acceptRanges,
  };
  const represent = (part: SourceContent, coding: Precompressed | undefined): Representation => {
    const tag = tagOf(part, settings);
    const { mtime } = part.stat;
    const modified = settings.lastModified && mtime ? toLastModified(mtime.getTime()) : undefined;
    const metadata = { ...common, coding, size: part.stat.size };
    return new SourceRepresentation(part, metadata, tag && etagForCoding(tag, coding), modified);
  };
  const uncompressed = represent(content, undefined);
  const read = (): Promise<Buffer | undefined> => readVerified(loader.source, path, stat.size, contentEtag);
  return {
    kind: 'file',
    dependencies: [],
    uncompressed,
    precompressed: copies.contents.map((copy) => represent(copy, copy.coding)),
    createdCodings: factory?.create({ etag: contentEtag ?? '', size: stat.size, read }, uncompressed),
    deltas: undefined,
    stats: settings.setHeaders === undefined ? undefined : statsOf(stat),
    canStream: true,
    isRacilyClean: false,
    changedAt: 0,
  };
}

/** A path whose stat decided the result. */
interface SourceDependency {
  readonly path: string;
  /** The version of the file; 'directory', or undefined if there was nothing. */
  readonly version: string | undefined;
}

/** A file that a URL path leads to, a directory, or nothing, with the paths that decided it. */
interface SourceResolution {
  readonly found:
    | { readonly kind: 'file'; readonly path: string; readonly stat: SourceStat }
    | { readonly kind: 'directory' }
    | NotFound;
  readonly dependencies: readonly SourceDependency[];
}

/** Finds the file of a source for a URL path, in the same order as in a directory. */
async function resolveSourceFile(
  source: StaticSource,
  urlPath: string,
  settings: StaticSettings,
): Promise<SourceResolution> {
  const dependencies: SourceDependency[] = [];
  const stat = async (path: string): Promise<SourceStat | 'directory' | undefined> => {
    const result = await source.stat(path);
    dependencies.push({ path, version: versionOf(result) });
    return result;
  };
  let isDirectory = false;
  for (const path of candidatesFor(urlPath, settings)) {
    const result = await stat(path);
    if (result === undefined) continue;
    if (result !== 'directory') return { found: { kind: 'file', path, stat: result }, dependencies };
    if (path !== urlPath) continue;
    isDirectory = true;
    if (!settings.cleanUrls && (await hasIndex(urlPath, settings, stat))) break;
  }
  const found = isDirectory && settings.html ? ({ kind: 'directory' } as const) : notFound('no such file');
  return { found, dependencies };
}

async function hasIndex(
  urlPath: string,
  { extensions, index }: StaticSettings,
  stat: (path: string) => Promise<SourceStat | 'directory' | undefined>,
): Promise<boolean> {
  if (extensions.length === 0) return true;
  for (const name of index) {
    const result = await stat(`${urlPath}/${name}`);
    if (result !== undefined && result !== 'directory') return true;
  }
  return false;
}

/** Returns the part of a stat that changes with the file. */
function versionOf(stat: SourceStat | 'directory' | undefined): string | undefined {
  return stat === undefined || stat === 'directory' ? stat : `file ${stat.size} ${stat.version}`;
}

/** A representation of a file of a source, with the version that it describes. */
class SourceRepresentation extends Representation {
  readonly sourceVersion: string | undefined;

  constructor(
    content: SourceContent,
    metadata: Metadata,
    tag: string | undefined,
    modified: number | undefined,
  ) {
    const { path, body, stat } = content;
    // An invalid date counts as none.
    const time = BigInt(stat.mtime?.getTime() || 0) * 1_000_000n;
    const version = { dev: 0n, ino: 0n, size: BigInt(stat.size), mtimeNs: time, ctimeNs: time };
    super(metadata, { path, realPath: path, version, body }, { tag, modified });
    this.sourceVersion = versionOf(stat);
  }
}

/** A file with its content, which is in memory if it is small enough. */
interface SourceContent {
  readonly path: string;
  readonly stat: SourceStat;
  readonly body: Buffer | undefined;
  readonly contentEtag: string | undefined;
}

/** Returns the ETag of the content. A file that was not hashed is identified by the version of its source. */
function tagOf({ stat, contentEtag }: SourceContent, { etag }: StaticSettings): string | undefined {
  if (etag === 'none') return undefined;
  if (etag === 'content' && contentEtag !== undefined) return contentEtag;
  const version = createHash('sha1').update(stat.version).digest('base64url');
  return `"${stat.size.toString(16)}-${version}"`;
}

const REGULAR_FILE = 0o100_444;

/** The argument of `setHeaders`, with the fields that a source knows. */
function statsOf({ size, mtime: given }: SourceStat): Stats {
  // Sources in JavaScript may have null.
  const mtime = given ?? new Date(0);
  const time = { mtime, ctime: mtime, mtimeMs: mtime.getTime(), ctimeMs: mtime.getTime() };
  return Object.assign(Object.create(Stats.prototype), { size, mode: REGULAR_FILE, ...time });
}

class ChangedError extends Error {}

/**
 * Streams a body from a source. It sends the headers after it has read the first bytes. The last bytes are
 * sent only if the file has not changed meanwhile, otherwise the connection is destroyed.
 *
 * @param retry - called if the file has changed before anything was sent
 */
function sendFromSource(
  source: StaticSource,
  request: RequestContext,
  plan: StreamPlan,
  retry: () => void,
): void {
  const { res } = request;
  if (isQueued(res)) {
    whenFirst(res, () => sendFromSource(source, request, plan, retry));
    return;
  }
  start(source, request, plan).then(
    () => {},
    (error: unknown) => {
      if (isFinished(res)) return;
      if (error instanceof ChangedError || isNotFoundError(error)) retry();
      else if (isResourceError(error)) sendOutOfResources(request, error);
      else request.next(toError(error));
    },
  );
}

async function start(source: StaticSource, { res }: RequestContext, plan: StreamPlan): Promise<void> {
  const chunks = bodyOf(source, plan, res);
  const first = await chunks.next();
  if (isFinished(res)) {
    await chunks.return(undefined);
    return;
  }
  setResponseHeaders(res, plan.status, plan.headers);
  const rest = async function* (): AsyncGenerator<Uint8Array> {
    try {
      if (first.done !== true) yield first.value;
      yield* chunks;
    } finally {
      await chunks.return(undefined);
    }
  };
  try {
    await pipeline(Readable.from(rest(), { objectMode: false }), res, { end: false });
    res.end();
  } catch (error) {
    // The client must not take the response for complete.
    if (!res.headersSent) throw error;
    destroyIncomplete(res, isAborted(res) || error instanceof ChangedError ? undefined : error);
  }
}

async function* bodyOf(
  source: StaticSource,
  { representation, sections, tail }: StreamPlan,
  res: ServerResponse,
): AsyncGenerator<Uint8Array, undefined> {
  const { path } = representation;
  for (const [index, { start, end, before }] of sections.entries()) {
    let remaining = end - start + 1;
    let prefix = before;
    if (remaining <= 0) continue;
    for await (const chunk of openFor(res, source, path, { start, end })) {
      remaining -= chunk.length;
      if (remaining < 0) throw new ChangedError();
      if (remaining === 0 && index === sections.length - 1) await verify(source, representation);
      if (prefix !== undefined) yield prefix;
      prefix = undefined;
      yield chunk;
    }
    if (remaining > 0) throw new ChangedError();
  }
  if (tail !== undefined) yield tail;
  return undefined;
}

/** Opens a file for a response, and closes it when the client disconnects, also while the source sends nothing. */
async function* openFor(
  res: ServerResponse,
  source: StaticSource,
  path: string,
  range: ByteRange,
): AsyncGenerator<Uint8Array> {
  const bytes = await source.open(path, range);
  const destroy = (): void => destroyBytes(bytes);
  if (isAborted(res)) {
    destroy();
    return;
  }
  res.once('close', destroy);
  try {
    yield* chunksOf(bytes);
  } finally {
    res.off('close', destroy);
  }
}

async function verify(source: StaticSource, representation: StreamPlan['representation']): Promise<void> {
  if (!(representation instanceof SourceRepresentation)) return;
  if (versionOf(await source.stat(representation.path)) !== representation.sourceVersion)
    throw new ChangedError();
}

/** Returns the bytes of a file; undefined if their number is not the expected one. */
async function readAll(source: StaticSource, path: string, size: number): Promise<Buffer | undefined> {
  if (size === 0) return Buffer.alloc(0);
  const bytes = await source.open(path, { start: 0, end: size - 1 });
  if (types.isUint8Array(bytes)) {
    return bytes.length === size ? Buffer.from(bytes.buffer, bytes.byteOffset, size) : undefined;
  }
  const body = Buffer.allocUnsafeSlow(size);
  let filled = 0;
  for await (const chunk of bytes) {
    if (filled + chunk.length > size) return undefined;
    body.set(chunk, filled);
    filled += chunk.length;
  }
  return filled === size ? body : undefined;
}

async function hashAll(source: StaticSource, path: string, size: number): Promise<string | undefined> {
  const hash = createHash('sha1');
  let length = 0;
  for await (const chunk of chunksOf(await source.open(path, { start: 0, end: size - 1 }))) {
    hash.update(chunk);
    length += chunk.length;
    // The stream may never end.
    if (length > size) return undefined;
  }
  return length === size ? etagFromDigest(size, hash) : undefined;
}

/**
 * Iterates over bytes, whether they are in one piece or a stream. Large chunks are split: they would fill the memory
 * of an HTTP/2 session.
 */
async function* chunksOf(bytes: SourceBytes): AsyncGenerator<Uint8Array> {
  if (types.isUint8Array(bytes)) yield* split(bytes);
  else for await (const chunk of bytes) yield* split(chunk);
}

function* split(chunk: Uint8Array): Generator<Uint8Array> {
  if (chunk.length <= HTTP2_CHUNK) yield chunk;
  else
    for (let start = 0; start < chunk.length; start += HTTP2_CHUNK) {
      yield chunk.subarray(start, start + HTTP2_CHUNK);
    }
}

/** Reads a file again; undefined if it has another content now. */
async function readVerified(
  source: StaticSource,
  path: string,
  size: number,
  etag: string | undefined,
): Promise<Buffer | undefined> {
  const body = await readAll(source, path, size);
  return body !== undefined && (await etagOfBytes(body)) === etag ? body : undefined;
}

type Found = SourceStat | 'directory' | undefined;

/** Checks what the functions of a source return. The `stat` of a checked source returns no other thenable than a promise. */
function checkedSource(source: StaticSource): StaticSource {
  return {
    stat(path) {
      const found = source.stat(path);
      return isThenable(found) ? Promise.resolve(found).then(checkStat) : checkStat(found);
    },
    open: async (path, range) => checkBytes(await source.open(path, range)),
    list: () => source.list(),
  };
}

function checkStat(found: unknown): Found {
  if (found === undefined || found === 'directory' || isStat(found)) return found;
  const accepted = "{ size, version, mtime }, 'directory' or undefined; version is a string, mtime a Date";
  throw wrongReturnValue(STATIC_OPTIONS, 'dir.stat', found, accepted);
}

function isStat(found: unknown): found is SourceStat {
  if (!isObject(found)) return false;
  const { size, version, mtime } = found;
  return isCount(size) && isString(version) && (mtime === undefined || mtime === null || types.isDate(mtime));
}

function checkBytes(bytes: SourceBytes): SourceBytes {
  if (types.isUint8Array(bytes)) return bytes;
  if (isObject(bytes) && Symbol.asyncIterator in bytes) return new CheckedChunks(bytes);
  throw wrongBytes(bytes);
}

/** Text is not converted to bytes: its length is not the number of its bytes. */
class CheckedChunks implements AsyncIterable<Uint8Array> {
  readonly #chunks: AsyncIterable<unknown>;

  constructor(chunks: AsyncIterable<unknown>) {
    this.#chunks = chunks;
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array> {
    for await (const chunk of this.#chunks) {
      if (!types.isUint8Array(chunk)) throw wrongBytes(chunk);
      yield chunk;
    }
  }

  destroy(): void {
    const chunks = this.#chunks;
    if ('destroy' in chunks && typeof chunks.destroy === 'function') chunks.destroy();
  }
}

/** Closes a stream that may be waiting for bytes. An iterator could not return before they arrive. */
function destroyBytes(bytes: SourceBytes): void {
  if (bytes instanceof CheckedChunks) bytes.destroy();
}

const wrongBytes = (value: unknown): TypeError =>
  wrongReturnValue(STATIC_OPTIONS, 'dir.open', value, 'a Uint8Array, or an async iterable of Uint8Arrays');
