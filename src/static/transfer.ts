import type { IncomingMessage, ServerResponse } from 'node:http';
import { basename, dirname } from 'node:path';
import send from 'send';
import { openReal, versionOf } from './descriptor.ts';
import type { Exchange, Means } from './exchange.ts';
import { meansBusy } from './file-errors.ts';
import { isOver, setHead } from './head.ts';
import { sameVersion } from './identity.ts';
import { type Cargo, pump, type Source } from './pump.ts';
import { refuseBusy } from './refuse.ts';
import type { HeaderList, Representation } from './representation.ts';

const RESTARTS = 8;

/** An answer whose body is read while it is sent. */
export interface Plan extends Cargo {
  readonly status: number;
  readonly headers: HeaderList;
}

/** Opens the very version that the headers describe and streams it; if it has been replaced, the request starts over. */
export async function transfer(
  exchange: Exchange,
  representation: Representation,
  plan: Plan,
  means: Means,
): Promise<void> {
  const source = await openVersion(exchange, representation, means);
  if (source === undefined) return;
  if (isOver(exchange.res)) return source.handle.close();
  if (plan.tail === undefined) return sendRange(exchange, representation, plan, source, means);
  setHead(exchange.res, plan.status, plan.headers);
  pump(source, plan, exchange.res, means.chunks);
}

async function openVersion(
  exchange: Exchange,
  { realPath, identity }: Representation,
  means: Means,
): Promise<Source | undefined> {
  try {
    const handle = await openReal(realPath);
    const found = handle && (await versionOf(handle));
    if (handle !== undefined && found !== undefined && sameVersion(identity, found))
      return { handle, identity: found };
    await handle?.close();
    startOver(exchange, means);
  } catch (error) {
    if (meansBusy(error)) refuseBusy(exchange);
    else exchange.next(error);
  }
  return undefined;
}

/**
 * `send` frames the body; its guesses are switched off (they come from a stat of its own, taken at another moment)
 * and its stream is replaced by ours, which reads the descriptor that was verified.
 */
function sendRange(
  exchange: Exchange,
  { realPath, facts }: Representation,
  plan: Plan,
  source: Source,
  means: Means,
): void {
  const [range] = plan.sections;
  const transmission = send(withoutConditions(exchange.req), `/${encodeURIComponent(basename(realPath))}`, {
    root: dirname(realPath),
    dotfiles: 'allow',
    acceptRanges: false,
    cacheControl: false,
    etag: false,
    lastModified: false,
    ...(range === undefined ? {} : { start: range.start, end: range.end }),
  });
  const restart = (): void => {
    source.handle.close().then(() => startOver(exchange, means), exchange.next);
  };
  transmission.stream = () => pump(source, plan, exchange.res, means.chunks);
  transmission.on('file', (_path, stat) => {
    stat.size = facts.size;
  });
  transmission.on('headers', (res: ServerResponse) => setHead(res, plan.status, plan.headers));
  transmission.on('directory', restart);
  transmission.on('error', restart);
  transmission.pipe(exchange.res);
}

/** The request as `send` should see it: preconditions and ranges have been decided, exactly, before. */
function withoutConditions(req: IncomingMessage): IncomingMessage {
  return Object.create(req, { headers: { value: {} } });
}

/** The file changed between the look and the answer: looks again, unless it never holds still. */
function startOver(exchange: Exchange, means: Means): void {
  if (++exchange.restarts > RESTARTS) refuseBusy(exchange);
  else means.askFor(exchange, exchange.slot.key);
}
