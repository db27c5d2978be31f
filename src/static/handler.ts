import { AsyncResource } from 'node:async_hooks';
import type { ServerResponse } from 'node:http';
import type { ConnectRequest, NextFunction } from '../../types/connect.ts';
import { createBackgroundEtags } from './cache/background-etag.ts';
import { createCircuitBreaker, diskBytesOfThread } from './cache/circuit-breaker.ts';
import { Coalescer } from './cache/coalesce.ts';
import { budgetFor } from './cache/default-budget.ts';
import type { CacheEntry } from './cache/entry.ts';
import { FileCache } from './cache/file-cache.ts';
import type { CheckContext } from './cache/revalidate.ts';
import { createCodingFactory } from './compression/compressed-codings.ts';
import { Compressor } from './compression/compressor.ts';
import { createDeltas } from './dictionaries/file-deltas.ts';
import type { RootDirectory } from './disk/root-directory.ts';
import { createThreadsOf } from './disk/thread-share.ts';
import { loadFile, stillResolves } from './file/load.ts';
import type { CodingFactory, LoadResult } from './file/loaded-file.ts';
import { observeRequest, staticRequests } from './observed-request.ts';
import type { StaticSettings } from './options.ts';
import { hasDotSegment, parseRequestPath } from './request/request-path.ts';
import { passThrough } from './respond/pass-through.ts';
import { mountSegmentWithoutSlash, redirectToSlash } from './respond/redirect.ts';
import type { RequestContext, RequestTriple, ServeContext } from './respond/request-context.ts';
import { respond, serve } from './respond/respond.ts';
import { DiskSender } from './respond/send-from-disk.ts';
import { sendStatus } from './respond/send-status.ts';
import { assertPages } from './root.ts';
import { BufferPool } from './stream/buffer-pool.ts';

/** Responds to one request, or calls `next`. */
export type StaticHandler = (req: ConnectRequest, res: ServerResponse, next: NextFunction) => void;

// Bytes of read buffers for all streamed responses of one middleware.
const READ_BUFFER_BYTES = 32 << 20;

/** The functions that load and check the files of a directory. */
export interface DirectoryFiles {
  readonly load: CheckContext['load'];
  readonly stillResolves: CheckContext['stillResolves'];
  readonly localDevice: CheckContext['localDevice'];
  readonly mounts: CheckContext['mounts'];
}

/** Creates the handler of a `staticFiles` middleware for the files of a directory. */
export function createDirectoryHandler(root: RootDirectory, settings: StaticSettings): StaticHandler {
  assertPages(root, settings);
  const codingFactory = codingFactoryFor(root, settings);
  return createFileHandler(settings, {
    load: (urlPath, { isPopular }) => loadFile(root, urlPath, settings, { isPopular, codingFactory }),
    stillResolves: (file) => stillResolves(root, file, settings),
    localDevice: root.localDevice,
    mounts: root.mounts,
  });
}

/** Creates the factory of codings that are created while files are served. */
function codingFactoryFor(root: RootDirectory, { compress }: StaticSettings): CodingFactory | undefined {
  if (compress === undefined) return undefined;
  const compressor = new Compressor(compress);
  return createCodingFactory(compressor, createDeltas(compressor, root));
}

/** Creates a handler that loads and checks files with the functions of a directory, which tests replace. */
export function createFileHandler(settings: StaticSettings, files: DirectoryFiles): StaticHandler {
  const { load, stillResolves, localDevice, mounts } = files;
  const cache = new FileCache(budgetFor(settings.cache));
  const breaker = createCircuitBreaker(diskBytesOfThread);
  const threadsOf = createThreadsOf(mounts, localDevice);
  const checker = new Coalescer({
    cache,
    load,
    stillResolves,
    localDevice,
    mounts,
    breaker,
    revalidateAfter: settings.cache.revalidateAfter,
    onCached: createBackgroundEtags(settings, threadsOf),
  });
  const sender = new DiskSender({ breaker, buffers: new BufferPool(READ_BUFFER_BYTES), threadsOf });
  const sendBody: ServeContext['sendBody'] = (request, plan, retry) => sender.send(request, plan, retry);
  return createCacheHandler({ settings, cache, checker, sendBody });
}

/** Creates a handler for the files of a directory or source: it serves those in the cache of the context. */
export function createCacheHandler(context: ServeContext): StaticHandler {
  const { settings, cache } = context;
  return (req, res, nextHandler) => {
    const isRead = req.method === 'GET' || req.method === 'HEAD';
    // Most requests are for a cached path in a spelling that needs no decoding: they skip the parser.
    const cached = isRead ? cache.get(withoutQuery(req.url ?? '')) : undefined;
    const next = staticRequests.hasSubscribers
      ? observeRequest({ req, res, next: nextHandler }, cached?.file !== undefined)
      : nextHandler;
    if (!isRead) return refuseMethod({ req, res, next }, settings);
    if (cached?.isLiteral === true) return serve(new FileRequest(req, res, next, cached, context));
    const urlPath = acceptPath({ req, res, next }, settings);
    if (urlPath === undefined) return;
    serve(new FileRequest(req, res, next, cache.getOrCreate(urlPath), context));
  };
}

function withoutQuery(url: string): string {
  const query = url.indexOf('?');
  return query < 0 ? url : url.slice(0, query);
}

/**
 * A request that is served from the cache. The coalescer calls `onChecked` after it has checked the entry.
 */
class FileRequest implements RequestContext {
  readonly req: ConnectRequest;
  readonly res: ServerResponse;
  readonly next: NextFunction;
  entry: CacheEntry;
  readonly context: ServeContext;
  readonly asyncScope: AsyncResource = new AsyncResource('espalier');
  status: 200 | 404 = 200;
  retries = 0;

  constructor(
    req: ConnectRequest,
    res: ServerResponse,
    next: NextFunction,
    entry: CacheEntry,
    context: ServeContext,
  ) {
    this.req = req;
    this.res = res;
    this.next = next;
    this.entry = entry;
    this.context = context;
  }

  onChecked(error: unknown, result: LoadResult | undefined): void {
    respond(this, error, result);
  }
}

function refuseMethod(request: RequestTriple, settings: StaticSettings): void {
  if (settings.fallthrough) request.next();
  else sendStatus(request, 405, { Allow: 'GET, HEAD' });
}

/**
 * Returns the decoded URL path below the mount; undefined when this function has responded or called `next`.
 */
function acceptPath(request: RequestTriple, settings: StaticSettings): string | undefined {
  const parsed = parseRequestPath(request.req.url ?? '', settings);
  if ('refusal' in parsed) return void passThrough(request, parsed.refusal, settings);
  const { path } = parsed;
  if (settings.dotfiles !== 'allow' && hasDotSegment(path)) {
    const status = settings.dotfiles === 'deny' ? 403 : 404;
    return void passThrough(request, { reason: 'a dotfile', status }, settings);
  }
  if (settings.html) {
    const mount = path === '/' && settings.redirect ? mountSegmentWithoutSlash(request.req) : undefined;
    return mount === undefined ? path : void redirectToSlash(request, mount);
  }
  return path.length > 1 && path.endsWith('/') ? path.slice(0, -1) : path;
}
