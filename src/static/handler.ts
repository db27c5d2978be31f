import { AsyncResource } from 'node:async_hooks';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { ConnectRequest, NextFunction } from '../../types/connect.ts';
import { createChannel, type EventChannel, Observed } from '../diagnostics/channels.ts';
import { packages } from '../diagnostics/packages.ts';
import { addVary, isResourceError, joinVary, startedBefore, toError, wasCutOff } from '../http/reply.ts';
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
  type Moved,
  type Waiter,
} from './cache.ts';
import type { Capabilities, PageMaker } from './capabilities.ts';
import { BackgroundEtags, CircuitBreaker, Coalescer, isCheckedWith } from './check.ts';
import { Compressor } from './compress.ts';
import { type Files, notFound } from './files.ts';
import type { KeptFiles } from './keep.ts';
import { languageOf, preferredLanguages, preferredPath, varyOf } from './languages.ts';
import type { Listings } from './listing.ts';
import { type LoadOptions, loadFile, stillResolves } from './load.ts';
import { optional } from './optional.ts';
import type { StaticSettings } from './options.ts';
import { encodePath, isHidden, isNavigation, mayBePage, parseRequestPath, targetOf } from './path.ts';
import { addMissing } from './representation.ts';
import {
  type FileRequest,
  failResponse,
  isClientGone,
  isFinished,
  type NotServed,
  passThrough,
  type RequestTriple,
  redirectBelowMount,
  redirectTo,
  redirectToSlash,
  referenceTo,
  sendOutOfResources,
  sendStatus,
  sendUnavailable,
} from './request.ts';
import { type StreamPlan, sendFile } from './respond.ts';
import { assertPages, isPermissionError, RootDirectory } from './root.ts';
import { hasRules, Rules } from './rules.ts';
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
export interface Shared extends Capabilities {
  readonly budget: MemoryBudget;
  readonly compressor: Compressor | undefined;
  readonly breaker: CircuitBreaker;
  readonly sender: DiskSender;
}

export function sharedBy({ cache, compress }: StaticSettings, capabilities: Capabilities = {}): Shared {
  const breaker = new CircuitBreaker();
  return {
    budget: budgetFor(cache),
    compressor: compress ? new Compressor() : undefined,
    breaker,
    sender: new DiskSender(breaker, new BufferPool(READ_BUFFER_BYTES)),
    ...capabilities,
  };
}

// Bytes of read buffers for all streamed responses of one middleware.
const READ_BUFFER_BYTES = 32 << 20;
// Simultaneous checks in the thread pool. More would delay the application's own DNS and file operations.
const MAX_CHECKS_IN_POOL = 16;

export function createHandler(
  files: RootDirectory | SourceFiles,
  settings: StaticSettings,
  shared: Shared = sharedBy(settings),
): StaticHandler {
  const { budget, compressor, breaker, limitLifetime } = shared;
  const isDirectory = files instanceof RootDirectory;
  if (settings.missing === 'throw' && isDirectory) assertPages(files, settings);
  else if (!isDirectory && settings.missing === 'allow') throw needsDirectory('missing');
  const cache = new FileCache(budget);
  const etags = new BackgroundEtags(settings);
  const pages = shared.createPages?.(files, settings);
  const keep = keepFor(files, settings);
  const listings = settings.listing ? createListings(files, settings, isDirectory) : undefined;
  const rules = settings.rules && new Rules(settings.rules, files, settings);
  const load: ServeContext['load'] = async (urlPath, { isPopular }) => {
    if (rules !== undefined && hasRules(urlPath)) return notFound('a file with rules');
    const result = await loadFile(files, urlPath, settings, { isPopular, compressor, pages, rules });
    return keep === undefined ? result : keep.afterLoad(urlPath, result, { isPopular, compressor, rules });
  };
  const checker = new Coalescer({
    cache,
    rules,
    load,
    stillResolves: (file) => stillResolves(keep?.owns(file) ? keep.root : files, file),
    files,
    breaker,
    revalidateAfter: settings.cache.revalidateAfter,
    onCached: (entry, file) => etags.add(entry, file),
    maxRunning: isDirectory ? MAX_CHECKS_IN_POOL : Number.POSITIVE_INFINITY,
  });
  const sender = isDirectory ? shared.sender : files;
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
    limitLifetime,
  });
  const close = (): void => {
    cache.close();
    keep?.close();
  };
  return { handle, close };
}

function keepFor(files: RootDirectory | SourceFiles, settings: StaticSettings): KeptFiles | undefined {
  if (settings.keep === undefined) return undefined;
  if (files instanceof RootDirectory) return createKeptFiles(settings.keep, files, settings);
  throw needsDirectory('keep');
}

function createKeptFiles(...given: ConstructorParameters<typeof KeptFiles>): KeptFiles {
  const { KeptFiles } = optional.keep();
  return new KeptFiles(...given);
}

function createListings(...given: ConstructorParameters<typeof Listings>): Listings {
  const { Listings } = optional.listing();
  return new Listings(...given);
}

const needsDirectory = (option: string): TypeError =>
  optionError(
    STATIC_OPTIONS,
    `option "${option}" is set, but the files come from a source; it works with a directory only`,
  );

function createCacheHandler(context: ServeContext): StaticHandler['handle'] {
  const { settings, cache, pages } = context;
  packages.etag();
  packages.send();
  return (req, res, nextHandler) => {
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
}

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
  if (parsed.kind === 'refused') {
    if (settings.urls !== undefined && redirectToSingleSlashes(request, settings)) return undefined;
    return void passThrough(request, parsed, settings);
  }
  const { path } = parsed;
  if (isHidden(path, settings)) {
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
  return parsed?.kind === 'path' && redirectBelowMount(request, parsed.path);
}

/** The state that all requests of one middleware share. */
interface ServeContext extends Pick<Capabilities, 'limitLifetime'> {
  readonly settings: StaticSettings;
  readonly files: Files;
  readonly cache: FileCache;
  readonly checker: Coalescer;
  readonly etags: BackgroundEtags;
  /** Sends bodies that are not in memory. */
  readonly sender: Pick<DiskSender, 'send'>;
  readonly load: (urlPath: string, options: LoadOptions) => Promise<LoadResult>;
  readonly pages: PageMaker | undefined;
  readonly keep: KeptFiles | undefined;
  readonly rules: Rules | undefined;
  readonly listings: Listings | undefined;
}

/**
 * What a path is to a request: that which was asked for; the same page in the folder of a language, because the path has no file;
 * another language or format of the file; this file again, because the other has disappeared; a page in place of a missing file.
 */
type Role = 'asked' | 'language' | 'variant' | 'original' | 'page';

interface Step {
  readonly urlPath: string;
  readonly role: Role;
  readonly status?: 200 | 404;
  /** Whether the file may still be answered in another language or format. */
  readonly mayVary?: boolean;
}

const NO_STEPS: readonly Step[] = [];

/** A request that is served from the cache. The coalescer calls `onChecked` after it has checked the entry. */
class CachedRequest implements Waiter, FileRequest {
  readonly req: ConnectRequest;
  readonly res: ServerResponse;
  readonly next: NextFunction;
  /** The cache entry of the path that is looked up, and of the one that was asked for. */
  entry: CacheEntry;
  asked: CacheEntry;
  readonly context: ServeContext;
  readonly asyncScope: AsyncResource = new AsyncResource('espalier');
  /** Whether the headers were sent before the request arrived. */
  readonly wasStarted: boolean;
  status = 200;
  inPlace: FileRequest['inPlace'];
  role: Role = 'asked';
  /** The paths to look up if that of `entry` has no file. */
  steps: readonly Step[] = NO_STEPS;
  mayVary = true;
  /** Whether the visitor has the file because of its language. */
  isTranslated = false;
  /** The number of changes of the file between its check and its response. */
  retries = 0;
  /** Whether the ETag of the file was computed for this request. */
  hasWaitedForEtag = false;

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
    this.asked = entry;
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
function serve(request: CachedRequest, checked?: LoadedFile): void {
  const { entry } = request;
  request.context.cache.use(entry);
  const isFresh = entry.freshUntil > 0 && entry.freshUntil > performance.now();
  if (entry.file !== undefined && (isFresh || (checked !== undefined && isCheckedWith(entry, checked))))
    respond(request, undefined, entry.file);
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

/**
 * Serves the first of some paths; the others follow while there is no file. False if there is none.
 *
 * @param checked - a file that was just checked, and whose check may hold for the path
 */
function tryNext(
  request: CachedRequest,
  steps: readonly Step[] = request.steps,
  checked?: LoadedFile,
): boolean {
  const [step] = steps;
  if (step === undefined) return false;
  const { urlPath, role, status = request.status, mayVary = false } = step;
  if (role === 'original') request.res.removeHeader('Content-Location');
  request.entry = request.context.cache.getOrCreate(urlPath);
  request.role = role;
  request.status = status;
  request.mayVary = mayVary;
  request.steps = steps.slice(1);
  serve(request, checked);
  return true;
}

function respond(request: CachedRequest, error: unknown, result: LoadResult | undefined): void {
  const { res, wasStarted } = request;
  if (wasStarted ? res.writableEnded || isClientGone(res) : isFinished(res)) return;
  if (request.role === 'asked' && followRule(request, true)) return;
  if (result === undefined) respondToError(request, error);
  else if (wasStarted && result.kind !== 'not-found') request.next(startedBeforeFile());
  else if (result.kind === 'file') respondWithFile(request, result);
  else if (result.kind === 'busy') sendUnavailable(request);
  else if (result.kind === 'moved') respondMoved(request, result);
  else if (result.kind === 'not-found') respondMissing(request, result);
  else if (request.role !== 'variant') respondWithFolder(request);
  else respondMissing(request, { reason: 'a directory' });
}

/** Whether the URL of the request names the path, or would without a language. */
const isByUrl = ({ role }: CachedRequest): boolean => role !== 'page' && role !== 'variant';

/** Redirects to the URL of a page. A page that was selected by other means than its URL is sent. */
function respondMoved(request: CachedRequest, { to }: Moved): void {
  // A page that was found in the folder of a language is at the path without it.
  const at = request.role === 'language' ? `/${to.split('/').slice(2).join('/')}` : to;
  if (isByUrl(request) && at !== request.asked.urlPath && redirectBelowMount(request, at)) return;
  if (++request.retries > MAX_RETRIES) sendUnavailable(request);
  else lookUp(request, request.context.cache.getOrCreate(to));
}

/** Redirects to the folder. It is served here in place of a file, and if middleware has removed the slash that the client has sent. */
function respondWithFolder(request: CachedRequest): void {
  if (isByUrl(request) && redirectToSlash(request)) return;
  request.entry = request.context.cache.getOrCreate(`${request.entry.urlPath}/`);
  if (request.role === 'asked') request.asked = request.entry;
  serve(request);
}

const startedBeforeFile = (): Error => startedBefore('staticFiles cannot send the file');

function respondToError(request: CachedRequest, error: unknown): void {
  if (isResourceError(error) && !request.wasStarted) sendOutOfResources(request, error);
  else request.next(toError(error));
}

/** Responds without a file: with another page, as a rule says, or with a list of the folder. */
function respondMissing(request: CachedRequest, cause: NotServed): void {
  if (tryNext(request)) return;
  const { role, context, asked } = request;
  if (role === 'page' || request.wasStarted) passThrough(request, cause, context.settings);
  else if (role === 'language' || !tryNext(request, languageSteps(request))) {
    request.role = 'asked';
    request.entry = asked;
    // A page of an earlier build asks for it. No other answer is right, and a cache must not keep this one.
    if (context.keep?.isMissingScript(asked.urlPath))
      sendStatus(request, 404, { 'Cache-Control': 'no-store' });
    else if (!followRule(request, false)) respondWithList(request, cause);
  }
}

/** Lists a folder without an index file, with the option `listing`. */
function respondWithList(request: CachedRequest, cause: NotServed): void {
  const { listings } = request.context;
  const { urlPath } = request.entry;
  if (listings === undefined || !urlPath.endsWith('/')) {
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

/** The page in each language, in the order that the client prefers. */
function languageSteps({ req, asked: { urlPath }, context: { settings } }: CachedRequest): readonly Step[] {
  if (settings.languages.length === 0 || languageOf(urlPath, settings) !== undefined || !mayBePage(urlPath))
    return NO_STEPS;
  return preferredLanguages(req, settings).map((language) => ({
    urlPath: `/${language}${urlPath}`,
    role: 'language',
    mayVary: true,
  }));
}

/** Does what a rule of the option `rules` says; false if there is none. */
function followRule(request: CachedRequest, isFile: boolean): boolean {
  const { req, entry, context } = request;
  if (request.wasStarted) return false;
  const action = context.rules?.actionFor(entry.urlPath, req.url ?? '', isFile);
  if (action === undefined) return false;
  if (action.kind === 'redirect') return redirectTo(request, action);
  const { urlPath, status } = action;
  if (!isFile && (status === 404 || mayBePage(urlPath))) {
    addVary(request.res, 'Accept, Sec-Fetch-Mode');
    if (!isNavigation(req) || (status === 200 && !mayBePage(entry.urlPath))) return false;
  }
  return tryNext(request, [{ urlPath, role: 'page', status }]);
}

/** Responds to page navigations with the fallback page, or with the page for 404 responses. */
function respondWithPage(request: CachedRequest, cause: NotServed): void {
  const { settings, files } = request.context;
  const { urlPath } = request.entry;
  const kinds = pageKindsFor(urlPath, settings);
  // The same URL is a page for navigations and a plain 404 for other requests, and a shared cache may store
  // either.
  if (kinds.length > 0) addVary(request.res, 'Accept, Sec-Fetch-Mode');
  const isPage = kinds.length > 0 && isNavigation(request.req);
  const proceed = (folders: readonly string[]): void => {
    if (isFinished(request.res)) return;
    const steps = isPage ? pageSteps(kinds, folders, settings) : [];
    if (!tryNext(request, steps)) passThrough(request, cause, settings);
  };
  if (!isPage || kinds.every((kind) => settings[kind] !== 'nearest')) proceed([]);
  else
    existingFolders(files, urlPath).then(proceed, (error: unknown) => {
      if (!isFinished(request.res)) respondToError(request, error);
    });
}

type PageKind = 'fallback' | 'notFound';

/** The pages that may be sent in place of a missing file. That of `fallback` is no answer to an asset. */
function pageKindsFor(urlPath: string, settings: StaticSettings): readonly PageKind[] {
  const kinds: PageKind[] = mayBePage(urlPath) ? ['fallback', 'notFound'] : ['notFound'];
  return kinds.filter((kind) => settings[kind] !== undefined && settings[kind] !== urlPath);
}

/**
 * The pages to try. With both from the nearest folder, the folder decides: one with a `404.html` has no application.
 *
 * @param folders - those above the path, the nearest first
 */
function pageSteps(kinds: readonly PageKind[], folders: readonly string[], settings: StaticSettings): Step[] {
  const stepsOf = (kind: PageKind, among: readonly string[]): Step[] => {
    const [name, status] =
      kind === 'fallback' ? (['index.html', 200] as const) : (['404.html', 404] as const);
    const page = settings[kind];
    const paths = page === 'nearest' ? among.map((folder) => folder + name) : [page ?? []].flat();
    return paths.map((urlPath) => ({ urlPath, role: 'page', status, mayVary: status === 404 }));
  };
  if (kinds.length < 2 || kinds.some((kind) => settings[kind] !== 'nearest'))
    return kinds.flatMap((kind) => stepsOf(kind, folders));
  return folders.flatMap((folder) => [...stepsOf('notFound', [folder]), ...stepsOf('fallback', [folder])]);
}

/** Passes exceptions, for example of `setHeaders`, to the application's error handlers. */
function respondWithFile(request: CachedRequest, file: LoadedFile): void {
  if (request.wasStarted) {
    request.next(startedBeforeFile());
    return;
  }
  if (request.mayVary && tryNext(request, variantOf(request, file), file)) return;
  if (file.page !== undefined && file.uncompressed.body === undefined) {
    makeAgain(request);
    return;
  }
  if (file.uncompressed.tag === undefined && needsEtag(request, file)) {
    waitForEtag(request, file);
    return;
  }
  request.inPlace = headersInPlace(request, file);
  let plan: StreamPlan | undefined;
  try {
    plan = sendFile(request, file);
  } catch (error) {
    failResponse(request, error);
    return;
  }
  if (plan === undefined) return;
  const { cache, sender } = request.context;
  cache.wantBodies(request.entry);
  sender.send(request, plan, () => retry(request));
}

/** The language or the format of a file that the client prefers, before the file itself; empty if that is the right one. */
function variantOf(
  request: CachedRequest,
  { languages, variants, uncompressed }: LoadedFile,
): readonly Step[] {
  request.isTranslated ||= request.role === 'language';
  if (languages === undefined && variants === undefined) return NO_STEPS;
  const isPage = request.role === 'page';
  const original: Step = { urlPath: request.entry.urlPath, role: isPage ? 'page' : 'original' };
  const role = isPage ? 'page' : 'variant';
  const translated = languages && preferredPath(request.req, languages, request.context.settings);
  if (translated !== undefined) {
    request.isTranslated = true;
    return [{ urlPath: translated, role, mayVary: true }, original];
  }
  request.mayVary = false;
  const variant = isPage ? undefined : variants && selectVariant(request, variants, uncompressed.metadata);
  return variant === undefined ? NO_STEPS : [{ urlPath: variant.path, role }, original];
}

/** The rules of the path that was asked for hold for the file in its place, before those of that file. */
function headersInPlace(request: CachedRequest, { page, uncompressed }: LoadedFile): FileRequest['inPlace'] {
  const { req, asked, entry, role, isTranslated, context } = request;
  if (entry === asked) return undefined;
  const { cacheControl, vary, added = [] } = uncompressed.metadata;
  const rule = context.rules?.headersFor(asked.urlPath);
  const headers = [...(rule?.headers ?? [])];
  const isPage = role === 'page';
  const reference = isTranslated && !isPage ? referenceTo(encodePath(entry.urlPath), req) : undefined;
  // In place of that of its format.
  if (isTranslated) request.res.removeHeader('Content-Location');
  if (reference !== undefined) headers.push('content-location', reference);
  return {
    // A page in place of a missing file does not live as long as that file.
    cacheControl: (isPage ? undefined : rule?.cacheControl) ?? cacheControl,
    vary: joinVary(vary, rule?.vary, isTranslated ? varyOf(context.settings) : undefined),
    added: page?.headersWith(added, headers) ?? addMissing(headers, added),
  };
}

/** Makes a page again whose body was evicted: no file has its bytes. */
function makeAgain(request: CachedRequest): void {
  const { entry, context } = request;
  context.cache.wantBodies(entry);
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
  context.etags.complete(file, () => !isClientGone(res)).then(proceed, proceed);
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
