import type { ServerResponse } from 'node:http';
import type { Framing } from './framing.ts';
import { StreamWriter } from './stream-writer.ts';

/** A streaming response whose payloads come from an async iterable. */
interface PayloadStream {
  readonly framing: Framing;
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  /** The payloads, as JSON text without line breaks. */
  readonly payloads: AsyncIterable<string>;
  /** Milliseconds between messages that keep the connection open, if the format has them. 0: none. */
  readonly keepAlive: number;
  /** Called when the source fails. Returns the last payload, if there is one. */
  onError(error: unknown): string | undefined;
}

/** Milliseconds after which a client that reads nothing is disconnected. */
const STALL_TIMEOUT = 30_000;

/**
 * Sends the payloads of an async iterable, each as soon as it is available. Reads the next payload only when
 * the client has received the previous ones, and calls `return` of the iterator when the client disconnects.
 * Never rejects.
 */
export async function streamPayloads(res: ServerResponse, stream: PayloadStream): Promise<void> {
  const { framing, status, headers, payloads, keepAlive } = stream;
  const writer = new StreamWriter(res, framing);
  const iterator = payloads[Symbol.asyncIterator]();
  const cancel = writer.onClosed(() => returnIterator(iterator));
  const timer = keepAlive > 0 ? setInterval(() => writer.keepAlive(), keepAlive).unref() : undefined;
  try {
    writer.open(status, headers);
    for (;;) {
      const { done, value } = await iterator.next();
      if (done === true) break;
      if (writer.isClosed) {
        returnIterator(iterator);
        break;
      }
      writer.send(value);
      await drained(writer);
    }
  } catch (error) {
    const last = writer.isClosed ? undefined : stream.onError(error);
    if (last !== undefined) writer.send(last);
  }
  clearInterval(timer);
  cancel();
  writer.end();
}

/** Waits until the client has received all payloads, or disconnects it. */
async function drained(writer: StreamWriter): Promise<void> {
  const waiting = writer.waitForDrain();
  if (waiting === undefined) return;
  const timer = setTimeout(() => writer.destroy(), STALL_TIMEOUT).unref();
  await waiting;
  clearTimeout(timer);
}

function returnIterator(iterator: AsyncIterator<string>): void {
  // A rejection of `return` concerns no client. A source that throws synchronously has stopped too.
  new Promise((resolve) => resolve(iterator.return?.())).catch(() => undefined);
}
