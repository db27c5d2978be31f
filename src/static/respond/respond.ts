import { toError } from '../../http/reply/http-error.ts';
import { isResourceError } from '../../http/reply/system-error.ts';
import { addVary } from '../../http/reply/write-reply.ts';
import type { CacheEntry } from '../cache/entry.ts';
import type { LoadedFile, LoadResult } from '../file/loaded-file.ts';
import { isNavigation, mayBePage } from '../request/navigation.ts';
import { failResponse, isFinished } from './headers.ts';
import { type NotServed, passThrough } from './pass-through.ts';
import { lastSegment, redirectToSlash } from './redirect.ts';
import type { RequestContext, StreamPlan } from './request-context.ts';
import { sendFile } from './send-file.ts';
import { sendOutOfResources, sendUnavailable } from './send-status.ts';

// Sufficient for a file that is replaced every few milliseconds, even on a busy machine.
const MAX_RETRIES = 40;

/** Responds from the cache while the entry is fresh; otherwise checks the entry first. */
export function serve(request: RequestContext): void {
  const { entry } = request;
  request.context.cache.use(entry);
  const isFresh = entry.freshUntil > 0 && entry.freshUntil > performance.now();
  if (entry.file !== undefined && isFresh) respondWithFile(request, entry.file);
  else lookUp(request, entry);
}

/**
 * Checks an entry together with all other requests for it. The coalescer then calls `onChecked`, which calls
 * `respond`.
 */
function lookUp(request: RequestContext, entry: CacheEntry): void {
  request.entry = entry;
  request.context.checker.check(request);
}

/** Responds with the result of a check. */
export function respond(request: RequestContext, error: unknown, result: LoadResult | undefined): void {
  if (isFinished(request.res)) return;
  if (result === undefined) respondToError(request, error);
  else if (result.kind === 'file') respondWithFile(request, result);
  else if (result.kind === 'busy') sendUnavailable(request);
  else if (result.kind === 'not-found') respondNotFound(request, result);
  else if (request.context.settings.redirect) redirectToSlash(request, lastSegment(request.entry.urlPath));
  else respondNotFound(request, { reason: 'a directory' });
}

function respondToError(request: RequestContext, error: unknown): void {
  if (isResourceError(error)) sendOutOfResources(request, error);
  else request.next(toError(error));
}

/** Responds to page navigations with the fallback page, or with the page for 404 responses. */
function respondNotFound(request: RequestContext, cause: NotServed): void {
  const { settings, cache } = request.context;
  const { fallback, notFound } = settings;
  const { urlPath } = request.entry;
  const page = fallback !== undefined && urlPath !== fallback && mayBePage(urlPath) ? fallback : notFound;
  if (page === undefined || page === urlPath || request.status === 404) {
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
  if (page !== fallback) request.status = 404;
  const entry = cache.getOrCreate(page);
  cache.use(entry);
  lookUp(request, entry);
}

/** Passes exceptions, for example of `setHeaders`, to the application's error handlers. */
function respondWithFile(request: RequestContext, file: LoadedFile): void {
  let plan: StreamPlan | undefined;
  try {
    plan = sendFile(request, file);
  } catch (error) {
    failResponse(request, error);
    return;
  }
  if (plan !== undefined) request.context.sendBody(request, plan, () => retry(request));
}

/** Checks the entry again after the file was replaced or moved between the check and the response. */
function retry(request: RequestContext): void {
  if (++request.retries > MAX_RETRIES) sendUnavailable(request);
  else {
    const entry = request.context.cache.getOrCreate(request.entry.urlPath);
    entry.pathVerifiedUntil = 0;
    lookUp(request, entry);
  }
}
