import { AsyncResource } from 'node:async_hooks';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { ConnectRequest, NextFunction } from '../../types/connect.ts';
import { createChannel, type EventChannel, Observed } from '../diagnostics/channels.ts';
import { packages } from '../diagnostics/packages.ts';
import { addVary, isResourceError, startedBefore, toError, wasCutOff } from '../http/reply.ts';
import { pathOf } from '../http/routing.ts';
import { optionError } from '../options/rules.ts';
import { STATIC_OPTIONS } from '../options/scopes.ts';
import { BufferPool, DiskSender } from './body.ts';
import {
  budgetFor,
  type CacheEntry,
  FileCache,
  type LoadedFile,
  type LoadResult,
  type MemoryBudget,
  type Waiter,
} from './cache.ts';
import { BackgroundEtags, CircuitBreaker, Coalescer } from './check.ts';
import { Compressor } from './compress.ts';
import { type Files, notFound } from './files.ts';
import { KeptFiles } from './keep.ts';
import { addLanguageHeaders, languageOf, preferredLanguages } from './languages.ts';
import { Listings } from './listing.ts';
import { type LoadOptions, loadFile, type Moved, stillResolves } from './load.ts';
import type { StaticSettings } from './options.ts';
import { Pages } from './pages.ts';
import { hasDotSegment, isNavigation, mayBePage, parseRequestPath, targetOf } from './path.ts';
import {
  type FileRequest,
  failResponse,
  isAborted,
  isFinished,
  type NotServed,
  passThrough,
  type RequestTriple,
  redirectBelowMount,
  redirectTo,
  redirectToSlash,
  sendOutOfResources,
  sendStatus,
  sendUnavailable,
} from './request.ts';
import { type StreamPlan, sendFile } from './respond.ts';
import { assertPages, isPermissionError, RootDirectory } from './root.ts';
import { addHeaders, Rules } from './rules.ts';
import type { SourceFiles } from './source.ts';
import { existingFolders } from './tree.ts';
import { selectVariant } from './variants.ts';

/** Serves the files of one directory or source, or of several. */
export interface StaticHandler {
  /** Responds to one request, or calls `next`. */
  handle(req: ConnectRequest, res: ServerResponse, next: NextFunction): void;
  /** Lets go what it holds. Requests that it is answering continue. */
  close(): void;
}

/** What all directories of one middleware share, whose limits are those of the middleware. */
export interface Shared {
  readonly budget: MemoryBudget;
  readonly compressor: Compressor | undefined;
  readonly breaker: CircuitBreaker;
  readonly sender: DiskSender;
}

export function sharedBy({ cache, compress }: StaticSettings): Shared {
  const breaker = new CircuitBreaker();
  return {
    budget: budgetFor(cache),
    compressor: compress && new Compressor(compress),
    breaker,
    sender: new DiskSender(breaker, new BufferPool(READ_BUFFER_BYTES)),
  };
}

// Bytes of read buffers for all streamed responses of one middleware.
const READ_BUFFER_BYTES = 32 << 20;
// Simultaneous checks in the thread pool. More would delay the application's own DNS and file operations.
const MAX_CHECKS_IN_POOL = 16;

/** Creates the handler of a directory or source. */
export function createHandler(
  files: RootDirectory | SourceFiles,
  settings: StaticSettings,
  { budget, compressor, breaker, sender: diskSender }: Shared = sharedBy(settings),
): StaticHandler {
  const isDirectory = files instanceof RootDirectory;
  if (settings.missing === 'throw' && isDirectory) assertPages(files, settings);
  else if (!isDirectory && settings.missing === 'allow') throw needsDirectory('missing');
  const cache = new FileCache(budget);
  const etags = new BackgroundEtags(settings);
  const pages = settings.pages && new Pages(settings.pages, files, settings);
  const keep = keepFor(files, settings);
  const listings = settings.listing ? new Listings(files, settings, isDirectory) : undefined;
  const rules = settings.rules && new Rules(settings.rules, files, settings);
  const load: ServeContext['load'] = async (urlPath, { isPopular }) => {
    if (rules?.hides(urlPath)) return notFound('a file with rules');
    const result = await loadFile(files, urlPath, settings, { isPopular, compressor, pages, rules });
    return keep === undefined ? result : keep.afterLoad(urlPath, result, { isPopular, compressor, rules });
  };
  const checker = new Coalescer({
    cache,
    load,
    stillResolves: (file) => stillResolves(keep?.owns(file) ? keep.root : files, file, settings),
    files,
    breaker,
    revalidateAfter: settings.cache.revalidateAfter,
    onCached: (entry, file) => etags.add(entry, file),
    maxRunning: isDirectory ? MAX_CHECKS_IN_POOL : Number.POSITIVE_INFINITY,
  });
  const sender = isDirectory ? diskSender : files;
  const handle = createCacheHandler({
    settings,
    files,
    cache,
    checker,
    etags,
    sender,
    load,
    pages,
    keep,
    rules,
    listings,
  });
  const close = (): void => {
    cache.close();
    keep?.close();
  };
  return { handle, close };
}

function keepFor(files: RootDirectory | SourceFiles, settings: StaticSettings): KeptFiles | undefined {
  if (settings.keep === undefined) return undefined;
  if (files instanceof RootDirectory) return new KeptFiles(settings.keep, files, settings);
  throw needsDirectory('keep');
}

const needsDirectory = (option: string): TypeError =>
  optionError(
    STATIC_OPTIONS,
    `option "${option}" is set, but the files come from a source; it works with a directory only`,
  );

/** Creates a handler for the files of a directory or source: it serves those in the cache of the context. */
function createCacheHandler(context: ServeContext): StaticHandler['handle'] {
  const { settings, cache, pages, rules } = context;
  packages.etag();
  packages.send();
  const handle: StaticHandler['handle'] = (req, res, nextHandler) => {
    const isRead = req.method === 'GET' || req.method === 'HEAD';
    // Most requests are for a cached path in a spelling that needs no decoding: they skip the parser.
    const cached = isRead ? cache.get(withoutQuery(req.url ?? '')) : undefined;
    const next = staticRequests.hasSubscribers
      ? observeRequest({ req, res, next: nextHandler }, cached?.file !== undefined)
      : nextHandler;
    if (!isRead) return refuseMethod({ req, res, next }, settings);
    if (pages !== undefined) pages.mount ??= mountOf(req);
    if (cached?.isLiteral === true) return serve(new CachedRequest(req, res, next, cached, context));
    const urlPath = acceptPath({ req, res, next }, settings);
    if (urlPath === undefined) return;
    serve(new CachedRequest(req, res, next, cache.getOrCreate(urlPath), context));
  };
  return rules === undefined ? handle : afterRefresh(rules, handle);
}

/** Lets requests wait while the files with rules are read. */
function afterRefresh(rules: Rules, handle: StaticHandler['handle']): StaticHandler['handle'] {
  return (req, res, next) => {
    const reading = rules.refresh();
    if (reading === undefined) handle(req, res, next);
    else void reading.then(() => handle(req, res, next));
  };
}

/** The path of the mount, as the client sees it. */
function mountOf({ url = '', originalUrl = url, baseUrl }: ConnectRequest): string {
  if (baseUrl !== undefined) return baseUrl;
  const path = pathOf(originalUrl);
  const below = pathOf(url);
  if (path.endsWith(below)) return path.slice(0, path.length - below.length);
  return below === '/' ? path : '';
}

function withoutQuery(url: string): string {
  const query = url.indexOf('?');
  return query < 0 ? url : url.slice(0, query);
}

function refuseMethod(request: RequestTriple, settings: StaticSettings): void {
  if (settings.fallthrough) request.next();
  else sendStatus(request, 405, { Allow: 'GET, HEAD' });
}

/** Returns the decoded URL path below the mount; undefined when this function has responded or called `next`. */
function acceptPath(request: RequestTriple, settings: StaticSettings): string | undefined {
  const parsed = parseRequestPath(targetOf(request.req), settings);
  if ('refusal' in parsed) {
    if (settings.urls !== undefined && redirectToSingleSlashes(request, settings)) return undefined;
    return void passThrough(request, parsed.refusal, settings);
  }
  const { path } = parsed;
  if (settings.dotfiles !== 'allow' && hasDotSegment(path)) {
    const status = settings.dotfiles === 'deny' ? 403 : 404;
    return void passThrough(request, { reason: 'a dotfile', status }, settings);
  }
  if (settings.html) {
    return path === '/' && redirectToSlash(request) ? undefined : path;
  }
  return path.length > 1 && path.endsWith('/') ? path.slice(0, -1) : path;
}

/** Redirects from a path with empty segments, such as `//a`, whether or not there is a file: a guard of `/a` then decides. */
function redirectToSingleSlashes(request: RequestTriple, settings: StaticSettings): boolean {
  const target = pathOf(targetOf(request.req));
  const single = target.replace(/\/{2,}/g, '/');
  const parsed = single === target ? undefined : parseRequestPath(single, settings);
  return parsed !== undefined && 'path' in parsed && redirectBelowMount(request, parsed.path);
}

/** The state that all requests of one middleware share. */
interface ServeContext {
  readonly settings: StaticSettings;
  readonly files: Files;
  readonly cache: FileCache;
  readonly checker: Coalescer;
  readonly etags: BackgroundEtags;
  /** Sends bodies that are not in memory. */
  readonly sender: Pick<DiskSender, 'send'>;
  readonly load: (urlPath: string, options: LoadOptions) => Promise<LoadResult>;
  readonly pages: Pages | undefined;
  readonly keep: KeptFiles | undefined;
  readonly rules: Rules | undefined;
  readonly listings: Listings | undefined;
}

/** A page that is sent in place of a missing file. */
interface PageEntry {
  readonly urlPath: string;
  readonly status: 200 | 404;
}

/** A request that is served from the cache. The coalescer calls `onChecked` after it has checked the entry. */
class CachedRequest implements Waiter, FileRequest {
  readonly req: ConnectRequest;
  readonly res: ServerResponse;
  readonly next: NextFunction;
  /** The cache entry of the URL path, or of the fallback page. */
  entry: CacheEntry;
  readonly context: ServeContext;
  readonly asyncScope: AsyncResource = new AsyncResource('espalier');
  /** Whether the headers were sent before the request arrived. */
  readonly wasStarted: boolean;
  status = 200;
  /** The entry of the file whose variant is sent; undefined for all other files. */
  original: CacheEntry | undefined = undefined;
  /** Whether `Accept` still has to decide between the variants of the file. */
  mayVary = true;
  /** The number of changes of the file between its check and its response. */
  retries = 0;
  /** Whether the ETag of the file was computed for this request. */
  hasWaitedForEtag = false;
  /** The entry of a path without a language, while pages of languages are tried for it. */
  asked: CacheEntry | undefined = undefined;
  /** The languages to try, in order; undefined before the first of them. */
  languages: string[] | undefined = undefined;
  /** The pages to try in place of a missing file, in order; undefined while the file itself is looked up. */
  pages: PageEntry[] | undefined = undefined;

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
    this.wasStarted = res.headersSent;
  }

  onChecked(error: unknown, result: LoadResult | undefined): void {
    respond(this, error, result);
  }
}

// Sufficient for a file that is replaced every few milliseconds, even on a busy machine.
const MAX_RETRIES = 40;

/** Responds from the cache while the entry is fresh; otherwise checks the entry first. */
function serve(request: CachedRequest): void {
  const { entry } = request;
  if (request.context.rules?.hasForced && followRule(request, true)) return;
  request.context.cache.use(entry);
  const isFresh = entry.freshUntil > 0 && entry.freshUntil > performance.now();
  if (entry.file !== undefined && isFresh) respondWithFile(request, entry.file);
  else lookUp(request, entry);
}

/**
 * Checks an entry together with all other requests for it. The coalescer then calls `onChecked`, which calls
 * `respond`.
 */
function lookUp(request: CachedRequest, entry: CacheEntry): void {
  request.entry = entry;
  request.context.checker.check(request);
}

/** Does what a rule of the option `rules` says; false if there is none. */
function followRule(request: CachedRequest, isFile: boolean): boolean {
  const { req, entry, context } = request;
  if (request.pages !== undefined || request.original !== undefined || request.wasStarted) return false;
  const action = context.rules?.actionFor(entry.urlPath, req.url ?? '', isFile);
  if (action === undefined) return false;
  if (action.kind === 'redirect') return redirectTo(request, action);
  if (!isFile && (action.status === 404 || mayBePage(action.urlPath))) {
    addVary(request.res, 'Accept, Sec-Fetch-Mode');
    if (!isNavigation(req) || (action.status === 200 && !mayBePage(entry.urlPath))) return false;
  }
  request.pages = [action];
  return tryPage(request);
}

/** Responds with the result of a check. */
function respond(request: CachedRequest, error: unknown, result: LoadResult | undefined): void {
  const { res, wasStarted } = request;
  if (wasStarted ? res.writableEnded || isAborted(res) : isFinished(res)) return;
  if (result === undefined) respondToError(request, error);
  else if (wasStarted && result.kind !== 'not-found') request.next(startedBeforeFile());
  else if (result.kind === 'file') respondWithFile(request, result);
  else if (result.kind === 'busy') sendUnavailable(request);
  else if (result.kind === 'moved') respondMoved(request, result);
  else if (request.original !== undefined) sendOriginal(request, request.original);
  else if (result.kind === 'not-found') respondNotFound(request, result);
  else if (request.pages === undefined) respondWithFolder(request);
  else respondNotFound(request, { reason: 'a directory' });
}

/** Redirects to the URL of a page. A page that was selected by other means than its URL is sent. */
function respondMoved(request: CachedRequest, { to }: Moved): void {
  const isAsked = request.pages === undefined && request.original === undefined;
  // A page that was found in the folder of a language is at the path without it.
  const at = request.asked === undefined ? to : `/${to.split('/').slice(2).join('/')}`;
  if (isAsked && at !== request.asked?.urlPath && redirectBelowMount(request, at)) return;
  if (++request.retries > MAX_RETRIES) sendUnavailable(request);
  else lookUp(request, request.context.cache.getOrCreate(to));
}

/** Redirects to the folder. If the client has asked for one, middleware has removed its slash: then it is served here. */
function respondWithFolder(request: CachedRequest): void {
  if (redirectToSlash(request)) return;
  request.entry = request.context.cache.getOrCreate(`${request.entry.urlPath}/`);
  serve(request);
}

/** Sends the file whose variant has disappeared after it was selected. */
function sendOriginal(request: CachedRequest, original: CacheEntry): void {
  request.res.removeHeader('Content-Location');
  request.original = undefined;
  request.mayVary = false;
  request.entry = original;
  serve(request);
}

const startedBeforeFile = (): Error => startedBefore('staticFiles cannot send the file');

function respondToError(request: CachedRequest, error: unknown): void {
  if (isResourceError(error) && !request.wasStarted) sendOutOfResources(request, error);
  else request.next(toError(error));
}

/** Lists a folder without an index file, with the option `listing`. */
function respondNotFound(request: CachedRequest, cause: NotServed): void {
  if (tryLanguage(request)) return;
  const { listings } = request.context;
  const { urlPath } = request.entry;
  const isPage = request.pages !== undefined;
  if (!request.context.keep?.isMissingScript(urlPath) && followRule(request, false)) return;
  if (isPage || listings === undefined || !urlPath.endsWith('/') || request.wasStarted) {
    respondWithPage(request, cause);
    return;
  }
  listings.send(request, urlPath).then(
    (isSent) => {
      if (!isSent && !isFinished(request.res)) respondWithPage(request, cause);
    },
    (error: unknown) => {
      if (isFinished(request.res)) return;
      if (isPermissionError(error)) respondWithPage(request, cause);
      else respondToError(request, error);
    },
  );
}

/** Looks up a page in the next language that the client prefers; false if there is none. */
function tryLanguage(request: CachedRequest): boolean {
  const { settings, cache } = request.context;
  if (settings.languages.length === 0 || request.pages !== undefined || request.wasStarted) return false;
  const asked = request.asked ?? request.entry;
  const { urlPath } = asked;
  if (languageOf(urlPath, settings) !== undefined || !mayBePage(urlPath)) return false;
  request.languages ??= [...preferredLanguages(request.req, settings)];
  const language = request.languages.shift();
  request.asked = language === undefined ? undefined : asked;
  request.entry = asked;
  if (language !== undefined) lookUp(request, cache.getOrCreate(`/${language}${urlPath}`));
  return language !== undefined;
}

/** Sends a page in the language that the client prefers; false if the file itself is the right one. */
function selectLanguage(request: CachedRequest, paths: ReadonlyMap<string, string>): boolean {
  const { settings, cache } = request.context;
  const [initial] = settings.languages;
  const language = preferredLanguages(request.req, settings).find(
    (each) => paths.has(each) || each === initial,
  );
  const path = paths.get(language ?? '');
  addLanguageHeaders(request, path ?? request.entry.urlPath, settings);
  if (path === undefined) return false;
  request.original = request.entry;
  request.entry = cache.getOrCreate(path);
  serve(request);
  return true;
}

/** Responds to page navigations with the fallback page, or with the page for 404 responses. */
function respondWithPage(request: CachedRequest, cause: NotServed): void {
  const { settings, keep } = request.context;
  if (keep?.isMissingScript(request.entry.urlPath) && !request.wasStarted) {
    // A page of an earlier build asks for it. No other answer is right, and a cache must not keep this one.
    sendStatus(request, 404, { 'Cache-Control': 'no-store' });
    return;
  }
  if (request.pages !== undefined) {
    if (!tryPage(request)) passThrough(request, cause, settings);
    return;
  }
  const kinds = pageKindsFor(request.entry.urlPath, settings);
  if (kinds.length === 0 || request.wasStarted) {
    passThrough(request, cause, settings);
    return;
  }
  // The same URL is a page for navigations and a plain 404 for other requests, and a shared cache may store
  // either.
  addVary(request.res, 'Accept, Sec-Fetch-Mode');
  if (!isNavigation(request.req)) {
    passThrough(request, cause, settings);
    return;
  }
  const proceed = (folders: readonly string[]): void => {
    request.pages = kinds.flatMap((kind) => pagesOf(kind, folders, settings));
    if (!isFinished(request.res) && !tryPage(request)) passThrough(request, cause, settings);
  };
  if (kinds.every((kind) => settings[kind] !== 'nearest')) proceed([]);
  else
    existingFolders(request.context.files, request.entry.urlPath).then(proceed, (error: unknown) => {
      if (!isFinished(request.res)) respondToError(request, error);
    });
}

type PageKind = 'fallback' | 'notFound';

/** The pages that may be sent in place of a missing file. That of `fallback` is no answer to an asset. */
function pageKindsFor(urlPath: string, settings: StaticSettings): readonly PageKind[] {
  const kinds: PageKind[] = mayBePage(urlPath) ? ['fallback', 'notFound'] : ['notFound'];
  return kinds.filter((kind) => settings[kind] !== undefined && settings[kind] !== urlPath);
}

/** @param folders - those above the path, the nearest first */
function pagesOf(kind: PageKind, folders: readonly string[], settings: StaticSettings): PageEntry[] {
  const page = settings[kind];
  if (page === undefined) return [];
  const status = kind === 'fallback' ? 200 : 404;
  const name = kind === 'fallback' ? 'index.html' : '404.html';
  const paths = page === 'nearest' ? folders.map((folder) => folder + name) : [page];
  return paths.map((urlPath) => ({ urlPath, status }));
}

/** Looks up the next page; false if there is none. */
function tryPage(request: CachedRequest): boolean {
  const page = request.pages?.shift();
  if (page === undefined) return false;
  const { cache } = request.context;
  request.status = page.status;
  request.mayVary = false;
  const entry = cache.getOrCreate(page.urlPath);
  cache.use(entry);
  lookUp(request, entry);
  return true;
}

/** Passes exceptions, for example of `setHeaders`, to the application's error handlers. */
function respondWithFile(request: CachedRequest, file: LoadedFile): void {
  if (request.wasStarted) {
    request.next(startedBeforeFile());
    return;
  }
  if (request.asked !== undefined)
    addLanguageHeaders(request, request.entry.urlPath, request.context.settings);
  if (file.languages !== undefined && request.mayVary && selectLanguage(request, file.languages)) return;
  if (file.variants !== undefined && request.mayVary) {
    request.mayVary = false;
    const variant = selectVariant(request, file.variants, file.uncompressed.metadata.type);
    if (variant !== undefined) {
      request.original = request.entry;
      request.entry = request.context.cache.getOrCreate(variant.path);
      serve(request);
      return;
    }
  }
  if (file.page !== undefined && file.uncompressed.body === undefined) {
    makeAgain(request);
    return;
  }
  if (file.uncompressed.tag === undefined && needsEtag(request, file)) {
    waitForEtag(request, file);
    return;
  }
  if (request.pages !== undefined) addAskedHeaders(request);
  let plan: StreamPlan | undefined;
  try {
    plan = sendFile(request, file);
  } catch (error) {
    failResponse(request, error);
    return;
  }
  if (plan === undefined) return;
  const { cache, settings, sender } = request.context;
  cache.wantBodies(request.entry, settings);
  sender.send(request, plan, () => retry(request));
}

/** The rules of the path that was asked for hold for the page in place of its file, before those of the page. */
function addAskedHeaders({ req, res, context: { rules, settings } }: CachedRequest): void {
  if (rules === undefined) return;
  const asked = parseRequestPath(targetOf(req), settings);
  if ('path' in asked) addHeaders(res, rules.headersFor(asked.path));
}

/** Makes a page again whose body was evicted: no file has its bytes. */
function makeAgain(request: CachedRequest): void {
  const { entry, context } = request;
  context.cache.wantBodies(entry, context.settings);
  context.load(entry.urlPath, { isPopular: false }).then(
    (result) => respond(request, undefined, result),
    (error: unknown) => respond(request, error, undefined),
  );
}

/** Whether a condition can be decided only when the file is hashed, which happens in the background. */
function needsEtag({ req, context, hasWaitedForEtag }: CachedRequest, file: LoadedFile): boolean {
  if (hasWaitedForEtag || !context.etags.isMissing(file)) return false;
  const names = ['if-match', 'if-none-match', 'if-range'] as const;
  return names.some((name) => String(req.headers[name] ?? '').includes('"'));
}

function waitForEtag(request: CachedRequest, file: LoadedFile): void {
  const { res, context } = request;
  request.hasWaitedForEtag = true;
  const proceed = (): void => {
    if (!isFinished(res)) respondWithFile(request, file);
  };
  // The file has no ETag if it cannot be read.
  context.etags.complete(file, () => !isAborted(res)).then(proceed, proceed);
}

/** Checks the entry again after the file was replaced or moved between the check and the response. */
function retry(request: CachedRequest): void {
  if (++request.retries > MAX_RETRIES) sendUnavailable(request);
  else {
    const entry = request.context.cache.getOrCreate(request.entry.urlPath);
    entry.pathVerifiedUntil = 0;
    lookUp(request, entry);
  }
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
  const onClose = (): void => observed.end({ status: res.statusCode, aborted: wasCutOff(res) });
  res.once('close', onClose);
  return (error) => {
    res.off('close', onClose);
    observed.end({ status: undefined, aborted: false });
    next(error);
  };
}
