import { AsyncResource } from 'node:async_hooks';
import type { ServerResponse } from 'node:http';
import type { ConnectRequest, NextFunction } from '../../types/connect.ts';
import { createTagger } from './cache/background-etag.ts';
import { createBreaker } from './cache/circuit-breaker.ts';
import { createLookups } from './cache/coalesce.ts';
import { createMemory, type Slot } from './cache/file-cache.ts';
import type { Load, LookupContext } from './cache/revalidate.ts';
import type { Settings } from './options.ts';
import { hasDotSegment, parseTarget } from './request/request-path.ts';
import { createChunks } from './respond/buffer-pool.ts';
import { mountWithoutSlash, redirectToSlash } from './respond/redirect.ts';
import type { Exchange, Means } from './respond/request-context.ts';
import { answerGuarded, concludeWith, miss } from './respond/respond.ts';
import { refuse } from './respond/send-status.ts';

/** Answers one request, or calls `next`. */
export type Site = (req: ConnectRequest, res: ServerResponse, next: NextFunction) => void;

// Read buffers of all transfers together.
const TRANSFER_MEMORY = 32 << 20;

/** Where the files of a site come from. */
export interface Origin {
  readonly load: Load;
  readonly isInPlace: LookupContext['isInPlace'];
  readonly device: LookupContext['device'];
  /** What stands before the path in the keys, when the answer depends on more than the path; undefined: 406. */
  readonly prefixOf?: (req: ConnectRequest) => string | undefined;
}

/** A directory, served. */
export function createSite(settings: Settings, origin: Origin): Site {
  const memory = createMemory(settings.cache);
  const context: LookupContext = {
    load: origin.load,
    isInPlace: origin.isInPlace,
    memory,
    device: origin.device,
    breaker: createBreaker(() => process.resourceUsage().fsRead),
    window: settings.cache.revalidateAfter,
    kept: createTagger(settings),
  };
  const ask = createLookups(context, (exchange, error, found) => concludeWith(exchange, error, found, means));
  const means: Means = {
    settings,
    chunks: createChunks(TRANSFER_MEMORY),
    askFor(exchange, key) {
      exchange.slot = memory.slotOf(key);
      ask(exchange);
    },
  };

  function serve(req: ConnectRequest, res: ServerResponse, next: NextFunction, slot: Slot): void {
    slot.used = true;
    const exchange: Exchange = { req, res, next, slot, restarts: 0, scope: new AsyncResource('espalier') };
    const { entry } = slot;
    const trusted = slot.trustedUntil > 0 && slot.trustedUntil > performance.now();
    if (entry !== undefined && trusted) answerGuarded(exchange, entry, means);
    else ask(exchange);
  }

  return (req, res, next) => {
    if (req.method !== 'GET' && req.method !== 'HEAD') return otherMethod(req, res, next, settings);
    const url = req.url ?? '';
    const query = url.indexOf('?');
    // Most requests ask for a path that is known, spelled as it is known.
    const known = memory.peek(query < 0 ? url : url.slice(0, query));
    if (known?.literal === true) return serve(req, res, next, known);
    const key = admit({ req, res, next }, settings);
    if (key === undefined) return;
    const prefix = origin.prefixOf === undefined ? '' : origin.prefixOf(req);
    if (prefix === undefined) refuse({ req, res }, 406, { Vary: 'Accept-Encoding' });
    else serve(req, res, next, memory.slotOf(prefix + key));
  };
}

function otherMethod(req: ConnectRequest, res: ServerResponse, next: NextFunction, settings: Settings): void {
  if (settings.fallthrough) next();
  else refuse({ req, res }, 405, { Allow: 'GET, HEAD' });
}

/** The path below the mount that is asked for; undefined when the request has been answered or passed on instead. */
function admit(asked: Pick<Exchange, 'req' | 'res' | 'next'>, settings: Settings): string | undefined {
  const target = parseTarget(asked.req.url ?? '', settings.windows);
  if ('refusal' in target) return void miss(asked, target.refusal, settings);
  const { path } = target;
  if (settings.dotfiles !== 'allow' && hasDotSegment(path)) {
    return void (settings.dotfiles === 'deny' ? refuse(asked, 403) : miss(asked, 'a dotfile', settings));
  }
  if (settings.html) {
    const mount = path === '/' && settings.redirect ? mountWithoutSlash(asked.req) : undefined;
    return mount === undefined ? path : void redirectToSlash(asked, mount);
  }
  return path.length > 1 && path.endsWith('/') ? path.slice(0, -1) : path;
}
