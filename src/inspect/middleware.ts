import type { ServerResponse } from 'node:http';
import type { ConnectRequest, MaybePromise, Middleware, NextFunction } from '../../types/connect.ts';
import type { InspectOptions } from '../../types/inspect.ts';
import { isDevelopment, noteInspectOff } from '../diagnostics/logging.ts';
import { NO_STORE, type Reply, toError, wasStarted, withVary, writeReply } from '../http/reply.ts';
import { pathOf } from '../http/routing.ts';
import { optionalFunction, resolveOptions, wrongReturnValue } from '../options/rules.ts';
import { INSPECT_OPTIONS } from '../options/scopes.ts';
import { createPage } from './page.ts';
import { Recorder } from './recorder.ts';

type Guard = (req: ConnectRequest) => MaybePromise<unknown>;

/** Creates the middleware of `inspect`. */
export function createInspect(given: InspectOptions | undefined): Middleware {
  const { guard } = resolveOptions<{ guard: Guard | undefined }>(INSPECT_OPTIONS, given, {
    guard: optionalFunction(),
  });
  if (guard === undefined && !isDevelopment()) {
    noteInspectOff();
    return (_req, _res, next) => next();
  }
  const recorder = new Recorder();
  const page = createPage();
  return (req: ConnectRequest, res, next) => {
    const respond = respondTo(req, res, recorder, page);
    if (respond === undefined) {
      next();
      return;
    }
    const unlessStarted = (send: () => void) => (): void => {
      if (!wasStarted(res, 'inspect cannot send its page', next)) send();
    };
    const allowed = unlessStarted(respond);
    const refused = unlessStarted(() => writeReply(req, res, FORBIDDEN));
    if (guard === undefined) allowed();
    else runGuard(guard, req, { allowed, refused, next });
  };
}

/** Returns the function that responds to a request; undefined for other paths and methods. */
function respondTo(
  req: ConnectRequest,
  res: ServerResponse,
  recorder: Recorder,
  page: Reply,
): (() => void) | undefined {
  if (req.method !== 'GET' && req.method !== 'HEAD') return undefined;
  const path = pathOf(req.url);
  const isFigures = path === '/figures.json';
  if (!isFigures && path !== '/' && path !== '') return undefined;
  return () => {
    const reply = isFigures || prefersJson(req) ? jsonOf(recorder) : page;
    const headers = { ...reply.headers, vary: withVary(res.getHeader('vary'), 'Accept') };
    writeReply(req, res, { ...reply, headers });
  };
}

/** Whether a client accepts JSON and not HTML: the page requests its figures from its own URL. */
function prefersJson({ headers: { accept = '' } }: ConnectRequest): boolean {
  return accept.includes('application/json') && !accept.includes('text/html');
}

const jsonOf = (recorder: Recorder): Reply => ({
  status: 200,
  headers: { ...NO_STORE, 'content-type': 'application/json; charset=utf-8' },
  body: JSON.stringify(recorder.read()),
});

const FORBIDDEN: Reply = {
  status: 403,
  headers: { ...NO_STORE, 'content-type': 'text/plain; charset=utf-8' },
  body: 'The guard of inspect does not allow this request\n',
};

/** Calls the option `guard`. Only `true` allows a request. */
function runGuard(
  guard: Guard,
  req: ConnectRequest,
  { allowed, refused, next }: { allowed(): void; refused(): void; next: NextFunction },
): void {
  const decide = async (): Promise<boolean> => {
    const decision = await guard(req);
    if (typeof decision === 'boolean') return decision;
    throw wrongReturnValue(INSPECT_OPTIONS, 'guard', decision, 'a boolean, or a promise of one');
  };
  decide()
    .then((isAllowed) => (isAllowed ? allowed() : refused()))
    .catch((error: unknown) => next(toError(error)));
}
