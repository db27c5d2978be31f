import { createHash } from 'node:crypto';
import { Stats } from 'node:fs';
import type { ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { types } from 'node:util';
import type { SourceBytes, SourceStat, StaticSource } from '../../types/sources.ts';
import type { ByteRange } from '../http/conditions.ts';
import {
  destroyIncomplete,
  HTTP2_CHUNK,
  isQueued,
  isResourceError,
  toError,
  whenFirst,
} from '../http/reply.ts';
import { wrongArgument, wrongReturnValue } from '../options/rules.ts';
import { STATIC_OPTIONS } from '../options/scopes.ts';
import { isCount, isFunction, isObject, isString, isThenable } from '../options/values.ts';
import type { Dependency, Files, FolderName, OpenedFile, PathStat } from './files.ts';
import { etagFromDigest } from './hash.ts';
import { type FileRequest, isClientGone, isFinished, sendOutOfResources } from './request.ts';
import { type StreamPlan, setResponseHeaders } from './respond.ts';
import { isNotFoundError } from './root.ts';
import type { FileVersion } from './version.ts';

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

type MaybeStat = SourceStat | 'directory' | undefined;

/** The files of a source. They are found, loaded, cached and checked like those of a directory. */
export class SourceFiles implements Files {
  readonly #source: StaticSource;
  #isSync = true;

  constructor(source: StaticSource) {
    this.#source = checkedSource(source);
  }

  pathOf(filePath: string): string {
    return filePath;
  }

  async stat(path: string): Promise<PathStat | undefined> {
    const found = this.#source.stat(path);
    if (found instanceof Promise) this.#isSync = false;
    const stat = await found;
    if (stat === undefined) return undefined;
    return { kind: stat === 'directory' ? 'directory' : 'file', version: versionOf(stat) };
  }

  async open(path: string, version: FileVersion): Promise<SourceFile> {
    return new SourceFile(this.#source, path, version);
  }

  async names(folder: string): Promise<readonly FolderName[]> {
    const names = new Map<string, FolderName>();
    for (const path of await this.#source.list()) {
      if (!path.startsWith(folder)) continue;
      const [name = '', ...below] = path.slice(folder.length).split('/', 2);
      names.set(name, { name, kind: below.length > 0 ? 'directory' : 'file', isLink: false });
    }
    return [...names.values()];
  }

  resolvesTo(): boolean {
    return true;
  }

  /** A source whose `stat` is synchronous, such as files in memory, is checked on the event loop. */
  allowsSync(): boolean {
    return this.#isSync;
  }

  isUnchangedSync(dependencies: readonly Dependency[]): boolean {
    try {
      for (const { path, version } of dependencies) {
        const stat = this.#source.stat(path);
        if (stat instanceof Promise) {
          // The asynchronous check reports a rejection.
          stat.catch(() => undefined);
          return false;
        }
        if (idOf(stat) !== version?.id) return false;
      }
      return true;
    } catch {
      // The asynchronous check handles the error.
      return false;
    }
  }

  async isUnchanged(dependencies: readonly Dependency[]): Promise<boolean> {
    const stats = await Promise.all(dependencies.map(async ({ path }) => this.#source.stat(path)));
    return dependencies.every(({ version }, index) => idOf(stats[index]) === version?.id);
  }

  /**
   * Streams a body. It sends the headers after it has read the first bytes. The last bytes are sent only if the
   * file has not changed meanwhile, otherwise the connection is destroyed.
   *
   * @param retry - called if the file has changed before anything was sent
   */
  send(request: FileRequest, plan: StreamPlan, retry: () => void): void {
    const { res } = request;
    if (isQueued(res)) {
      whenFirst(res, () => this.send(request, plan, retry));
      return;
    }
    start(this.#source, request, plan).catch((error: unknown) => {
      if (isFinished(res)) return;
      if (error instanceof ChangedError || isNotFoundError(error)) retry();
      else if (isResourceError(error)) sendOutOfResources(request, error);
      else request.next(toError(error));
    });
  }
}

/** Returns the part of a stat that changes with the file. */
function idOf(stat: MaybeStat): string | undefined {
  return stat === undefined || stat === 'directory' ? stat : `file ${stat.size} ${stat.version}`;
}

/** A source has no inodes: the id identifies the version. An invalid date counts as none. */
function versionOf(stat: SourceStat | 'directory'): FileVersion & { readonly id: string } {
  const { size, mtime } = stat === 'directory' ? { size: 0, mtime: undefined } : stat;
  const mtimeNs = BigInt(mtime?.getTime() || 0) * 1_000_000n;
  return { dev: 0n, ino: 0n, size: BigInt(size), mtimeNs, ctimeNs: 0n, id: idOf(stat) ?? '' };
}

/** A file of a source, which reads it when its bytes are needed. */
class SourceFile implements OpenedFile {
  readonly kind = 'opened';
  readonly realPath: string;
  readonly isOnDisk = false;
  readonly #source: StaticSource;
  #found: FileVersion | undefined;

  constructor(source: StaticSource, path: string, found: FileVersion) {
    this.realPath = path;
    this.#source = source;
    this.#found = found;
  }

  /** The first call returns the version that was found just before. */
  async version(): Promise<(FileVersion & { nlink: bigint }) | undefined> {
    const found = this.#found;
    this.#found = undefined;
    if (found !== undefined) return { ...found, nlink: 1n };
    const stat = await this.#stat();
    return stat && { ...versionOf(stat), nlink: 1n };
  }

  async read(size: number): Promise<Buffer | undefined> {
    if (size === 0) return Buffer.alloc(0);
    const bytes = await this.#open(size);
    if (types.isUint8Array(bytes))
      return bytes.length === size ? Buffer.from(bytes.buffer, bytes.byteOffset, size) : undefined;
    const body = Buffer.allocUnsafeSlow(size);
    const isWhole = await readExactly(bytes, size, (chunk, position) => body.set(chunk, position));
    return isWhole ? body : undefined;
  }

  async hash(size: number): Promise<string | undefined> {
    const hash = createHash('sha1');
    const isWhole = await readExactly(await this.#open(size), size, (chunk) => hash.update(chunk));
    return isWhole ? etagFromDigest(size, hash) : undefined;
  }

  async *chunks(): AsyncGenerator<Uint8Array, undefined> {
    const stat = await this.#stat();
    if (stat !== undefined) yield* chunksOf(await this.#open(stat.size));
    return undefined;
  }

  async stats(): Promise<Stats> {
    return statsOf((await this.#stat()) ?? { size: 0, version: '' });
  }

  close(): void {}

  async #stat(): Promise<SourceStat | undefined> {
    const stat = await this.#source.stat(this.realPath);
    return stat === 'directory' ? undefined : stat;
  }

  async #open(size: number): Promise<SourceBytes> {
    return this.#source.open(this.realPath, { start: 0, end: size - 1 });
  }
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

async function start(source: StaticSource, { res }: FileRequest, plan: StreamPlan): Promise<void> {
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
  const body = Readable.from(rest(), { objectMode: false });
  // Middleware that collects the body sends the headers later.
  let hasWritten = false;
  body.once('data', () => {
    hasWritten = true;
  });
  try {
    await pipeline(body, res, { end: false });
    res.end();
  } catch (error) {
    // The client must not take the response for complete.
    if (!hasWritten && !res.headersSent) throw error;
    destroyIncomplete(res, isClientGone(res) || error instanceof ChangedError ? undefined : error);
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
  // An iterator could not return before the bytes arrive for which it waits.
  const destroy = (): void => {
    if ('destroy' in bytes && typeof bytes.destroy === 'function') bytes.destroy();
  };
  if (isClientGone(res)) {
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
  if (idOf(await source.stat(representation.path)) !== representation.version.id) throw new ChangedError();
}

/** Whether a file has the expected number of bytes. Its stream may never end. */
async function readExactly(
  bytes: SourceBytes,
  size: number,
  use: (chunk: Uint8Array, position: number) => void,
): Promise<boolean> {
  let position = 0;
  for await (const chunk of chunksOf(bytes)) {
    if (position + chunk.length > size) return false;
    use(chunk, position);
    position += chunk.length;
  }
  return position === size;
}

/**
 * Iterates over bytes, whether they are in one piece or a stream. Large chunks are split: they would fill the memory
 * of an HTTP/2 session. Empty ones are left out, so that a response begins with bytes. Text is not converted to bytes: its
 * length is not the number of its bytes.
 */
async function* chunksOf(bytes: SourceBytes): AsyncGenerator<Uint8Array> {
  for await (const chunk of types.isUint8Array(bytes) ? [bytes] : bytes) {
    if (!types.isUint8Array(chunk)) throw wrongBytes(chunk);
    for (let start = 0; start < chunk.length; start += HTTP2_CHUNK)
      yield chunk.length <= HTTP2_CHUNK ? chunk : chunk.subarray(start, start + HTTP2_CHUNK);
  }
}

/** Checks what the functions of a source return. The `stat` of a checked source returns no other thenable than a promise. */
function checkedSource(source: StaticSource): StaticSource {
  return {
    stat(path) {
      const found = source.stat(path);
      return isThenable(found) ? Promise.resolve(found).then(checkStat) : checkStat(found);
    },
    open: async (path, range) => {
      const bytes = await source.open(path, range);
      if (types.isUint8Array(bytes) || (isObject(bytes) && Symbol.asyncIterator in bytes)) return bytes;
      throw wrongBytes(bytes);
    },
    list: () => source.list(),
  };
}

function checkStat(found: unknown): MaybeStat {
  if (found === undefined || found === 'directory' || isStat(found)) return found;
  const accepted = "{ size, version, mtime }, 'directory' or undefined; version is a string, mtime a Date";
  throw wrongReturnValue(STATIC_OPTIONS, 'dir.stat', found, accepted);
}

function isStat(found: unknown): found is SourceStat {
  if (!isObject(found)) return false;
  const { size, version, mtime } = found;
  return isCount(size) && isString(version) && (mtime === undefined || mtime === null || types.isDate(mtime));
}

const wrongBytes = (value: unknown): TypeError =>
  wrongReturnValue(STATIC_OPTIONS, 'dir.open', value, 'a Uint8Array, or an async iterable of Uint8Arrays');
