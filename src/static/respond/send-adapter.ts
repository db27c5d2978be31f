import type { IncomingMessage } from 'node:http';
import { basename, dirname } from 'node:path';
import send from 'send';
import { meansAbsent, meansBusy } from '../file/file-errors.ts';
import { openVersion, type Source } from '../file/open-version.ts';
import type { HeaderList, Representation } from '../file/representation.ts';
import { isOver, setHead } from './headers.ts';
import type { Exchange, Means } from './request-context.ts';
import { refuseBusy } from './send-status.ts';
import { type Payload, pump } from './stream-file.ts';

// A file that is replaced every few milliseconds is caught in one of them, however busy the machine.
const RESTARTS = 40;

/** An answer whose body is read while it is sent. */
export interface Plan extends Payload {
  readonly status: number;
  readonly headers: HeaderList;
}

/** Opens the very version that the headers describe and streams it; if it has been replaced, the request starts over. */
export function transfer(exchange: Exchange, representation: Representation, plan: Plan, means: Means): void {
  openVersion(representation, (error, source) => {
    if (isOver(exchange.res)) source?.close();
    else if (source !== undefined) begin({ exchange, representation, plan, source, means });
    else if (meansBusy(error)) refuseBusy(exchange);
    else if (error === undefined || meansAbsent(error)) startOver(exchange, means);
    else exchange.next(error);
  });
}

interface Transfer {
  readonly exchange: Exchange;
  readonly representation: Representation;
  readonly plan: Plan;
  readonly source: Source;
  readonly means: Means;
}

function begin(transfer: Transfer): void {
  const { exchange, plan, source, means } = transfer;
  try {
    if (plan.tail === undefined) sendOneRange(transfer);
    else {
      setHead(exchange.res, plan.status, plan.headers);
      pump(source, plan, exchange.res, means.chunks);
    }
  } catch (error) {
    source.close();
    exchange.next(error);
  }
}

/**
 * `send` frames the body. What it would find out by itself, by another stat at another moment, is replaced by what we
 * know of the open descriptor, and its stream by ours, which reads that descriptor.
 */
function sendOneRange({ exchange, representation, plan, source, means }: Transfer): void {
  const { realPath, facts } = representation;
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
  transmission.sendFile = (path) => {
    setHead(exchange.res, plan.status, plan.headers);
    transmission.send(path, Object.create(source.identity, { size: { value: facts.size } }));
  };
  transmission.stream = () => pump(source, plan, exchange.res, means.chunks);
  transmission.on('error', (error) => {
    source.close();
    exchange.next(error);
  });
  transmission.pipe(exchange.res);
}

/** The request as `send` should see it: preconditions and ranges have been decided, exactly, before. */
function withoutConditions(req: IncomingMessage): IncomingMessage {
  return Object.create(req, { headers: { value: {} } });
}

/** The file changed, or was moved, between the look and the answer: looks again, unless it never holds still. */
function startOver(exchange: Exchange, means: Means): void {
  if (++exchange.restarts > RESTARTS) refuseBusy(exchange);
  else {
    exchange.slot.resolvedUntil = 0;
    means.askFor(exchange, exchange.slot.key);
  }
}
