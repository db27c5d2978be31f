import { addVary } from '../../http/negotiation/vary.ts';
import { toError } from '../../http/reply/to-error.ts';
import { debug } from '../../logging/debug.ts';
import { meansBusy } from '../file/file-errors.ts';
import type { Found } from '../file/load.ts';
import type { Entry } from '../file/loaded-file.ts';
import type { Settings } from '../options.ts';
import { isNavigation, mayBePage } from '../request/navigation.ts';
import { isOver } from './headers.ts';
import { lastSegment, redirectToSlash } from './redirect.ts';
import type { Exchange, Means } from './request-context.ts';
import { answerFile } from './send-file.ts';
import { refuse, refuseBusy } from './send-status.ts';

/** Ends an exchange with what its path led to. */
export function concludeWith(
  exchange: Exchange,
  error: unknown,
  found: Found | undefined,
  means: Means,
): void {
  if (isOver(exchange.res)) return;
  if (found === undefined) concludeFailed(exchange, error);
  else if (found.kind === 'entry') answerGuarded(exchange, found, means);
  else if (found.kind === 'busy') refuseBusy(exchange);
  else if (found.kind === 'missing') concludeMissing(exchange, found.why, means);
  else if (means.settings.redirect) redirectToSlash(exchange, lastSegment(exchange.slot.key));
  else concludeMissing(exchange, 'a directory', means);
}

function concludeFailed(exchange: Exchange, error: unknown): void {
  if (meansBusy(error)) refuseBusy(exchange);
  else exchange.next(toError(error));
}

function concludeMissing(exchange: Exchange, why: string, means: Means): void {
  const { fallback } = means.settings;
  const { key } = exchange.slot;
  if (fallback === undefined || key === fallback || !mayBePage(key)) {
    miss(exchange, why, means.settings);
    return;
  }
  // Whether this URL is a page or a 404 depends on who asks, and a cache may keep either.
  addVary(exchange.res, 'Accept, Sec-Fetch-Mode');
  if (isNavigation(exchange.req)) means.askFor(exchange, fallback);
  else miss(exchange, why, means.settings);
}

/** What a hook throws, and what we get wrong, goes to the app's error handlers. */
export function answerGuarded(exchange: Exchange, entry: Entry, means: Means): void {
  try {
    answerFile(exchange, entry, means);
  } catch (error) {
    exchange.next(toError(error));
  }
}

/** Nothing for us to answer: on to the next middleware, or 404. */
export function miss(
  exchange: Pick<Exchange, 'req' | 'res' | 'next'>,
  why: string,
  settings: Settings,
): void {
  debug.static('%s %j: %s', exchange.req.method, exchange.req.url, why);
  if (settings.fallthrough) exchange.next();
  else refuse(exchange, 404);
}
