import type { IncomingMessage, ServerResponse } from 'node:http';
import type { ConnectRequest, NextFunction } from '../../types/connect.ts';
import { createChannel, type EventChannel, Observed } from '../diagnostics/channels.ts';
import { optionError } from '../options/rules.ts';
import { STATIC_OPTIONS } from '../options/scopes.ts';
import { BufferPool, DiskSender, sendPackage } from './body.ts';
import { budgetFor, FileCache } from './cache.ts';
import { BackgroundEtags, CircuitBreaker, Coalescer } from './check.ts';
import { CodingFactory, Compressor } from './compress.ts';
import { createDeltas } from './dictionaries.ts';
import { loadFile, stillResolves } from './load.ts';
import type { StaticSettings } from './options.ts';
import { hasDotSegment, parseRequestPath, targetOf } from './path.ts';
import { mountSegmentWithoutSlash, passThrough, redirectToSlash, sendStatus } from './reply.ts';
import { FileRequest, type RequestTriple, type ServeContext, serve } from './respond.ts';
import { assertPages, RootDirectory } from './root.ts';
import type { SourceFiles } from './source.ts';
import { etagPackage } from './version.ts';

/** Responds to one request, or calls `next`. */
type StaticHandler = (req: ConnectRequest, res: ServerResponse, next: NextFunction) => void;

// Bytes of read buffers for all streamed responses of one middleware.
const READ_BUFFER_BYTES = 32 << 20;
// Simultaneous checks in the thread pool. More would delay the application's own DNS and file operations.
const MAX_CHECKS_IN_POOL = 16;

/** Creates the handler of a `staticFiles` middleware. */
export function createHandler(files: RootDirectory | SourceFiles, settings: StaticSettings): StaticHandler {
  const isDirectory = files instanceof RootDirectory;
  if (isDirectory) assertPages(files, settings);
  const cache = new FileCache(budgetFor(settings.cache));
  const codingFactory = codingFactoryFor(files, settings);
  const breaker = new CircuitBreaker();
  const etags = new BackgroundEtags(settings);
  const checker = new Coalescer({
    cache,
    load: (urlPath, { isPopular }) => loadFile(files, urlPath, settings, { isPopular, codingFactory }),
    stillResolves: (file) => stillResolves(files, file, settings),
    allowsSync: (dependencies) => files.allowsSync(dependencies),
    isUnchangedSync: (dependencies) => files.isUnchangedSync(dependencies),
    isUnchanged: (dependencies) => files.isUnchanged(dependencies),
    breaker,
    revalidateAfter: settings.cache.revalidateAfter,
    onCached: (entry, file) => etags.add(entry, file),
    maxRunning: isDirectory ? MAX_CHECKS_IN_POOL : Number.POSITIVE_INFINITY,
  });
  const sender = isDirectory
    ? new DiskSender({ breaker, buffers: new BufferPool(READ_BUFFER_BYTES) })
    : files;
  const sendBody: ServeContext['sendBody'] = (request, plan, retry) => sender.send(request, plan, retry);
  return createCacheHandler({ settings, cache, checker, etags, sendBody });
}

/** Creates the factory of codings that are created while files are served. */
function codingFactoryFor(
  files: RootDirectory | SourceFiles,
  { compress }: StaticSettings,
): CodingFactory | undefined {
  if (compress === undefined) return undefined;
  const compressor = new Compressor(compress);
  if (files instanceof RootDirectory) return new CodingFactory(compressor, createDeltas(compressor, files));
  if (compress.dictionaries === undefined) return new CodingFactory(compressor, undefined);
  throw optionError(
    STATIC_OPTIONS,
    'option "compress.dictionaries" is on, but the files come from a source; it works with a directory only',
  );
}

/** Creates a handler for the files of a directory or source: it serves those in the cache of the context. */
function createCacheHandler(context: ServeContext): StaticHandler {
  const { settings, cache } = context;
  etagPackage.preload();
  sendPackage.preload();
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

function refuseMethod(request: RequestTriple, settings: StaticSettings): void {
  if (settings.fallthrough) request.next();
  else sendStatus(request, 405, { Allow: 'GET, HEAD' });
}

/**
 * Returns the decoded URL path below the mount; undefined when this function has responded or called `next`.
 */
function acceptPath(request: RequestTriple, settings: StaticSettings): string | undefined {
  const parsed = parseRequestPath(targetOf(request.req), settings);
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

/** The end of a request for a file. */
interface StaticResult {
  /** The status of the response; undefined if the request was passed to `next`. */
  readonly status: number | undefined;
  /** Whether the client disconnected before it had the whole response. */
  readonly aborted: boolean;
}

/** Published when a request for a file arrives. Subscribers may observe how it ends. */
export class ObservedRequest extends Observed<StaticResult> {
  readonly req: IncomingMessage;
  readonly res: ServerResponse;
  /** Whether the file was in the cache. Its file on disk may be checked all the same. */
  readonly isCached: boolean;

  constructor(req: IncomingMessage, res: ServerResponse, isCached: boolean) {
    super();
    this.req = req;
    this.res = res;
    this.isCached = isCached;
  }
}

const staticRequests: EventChannel<ObservedRequest> = createChannel('static:request');

/** Publishes a request. Returns the `next` function to use for it. */
function observeRequest(
  { req, res, next }: { req: IncomingMessage; res: ServerResponse; next: NextFunction },
  isCached: boolean,
): NextFunction {
  const observed = new ObservedRequest(req, res, isCached);
  staticRequests.publish(observed);
  const onClose = (): void => observed.end({ status: res.statusCode, aborted: !res.writableFinished });
  res.once('close', onClose);
  return (error) => {
    res.off('close', onClose);
    observed.end({ status: undefined, aborted: false });
    next(error);
  };
}
