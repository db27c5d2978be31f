import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import type { SubscribeRequest, SubscriptionResults } from '../../types/testing.ts';
import { optionError } from '../options/resolve-options.ts';
import { SUBSCRIBE_OPTIONS } from '../options/scopes.ts';
import { EventStreamClient } from './clients/event-stream-client.ts';
import type { SubscribeMessage, SubscriptionClient } from './clients/subscription-client.ts';
import { serveWebSockets, WebSocketClient } from './clients/websocket-client.ts';
import { type Target, targetOf } from './connection/target.ts';
import { paramsOf } from './messages/requests.ts';
import { openConnection } from './messages/send.ts';
import { checkSubscription } from './options.ts';

/** The channel of core/diagnostics.ts, which this folder does not import: tests need not install graphql. */
const CHANNEL = 'espalier:graphql:subscribe';

/** Starts an operation over a new connection, and resolves when the source stream is open. */
export async function startSubscription(
  targetValue: unknown,
  given: unknown,
): Promise<SubscriptionResults<unknown>> {
  const target = targetOf(SUBSCRIBE_OPTIONS, targetValue);
  const request = checkSubscription(given);
  const { signal } = request;
  signal?.throwIfAborted();
  const client = await openClient(target, request);
  const abort = (): void => client.abort(signal?.reason);
  signal?.addEventListener('abort', abort);
  client.results.onEnd = () => signal?.removeEventListener('abort', abort);
  // The modules of the transport were loaded meanwhile.
  if (signal?.aborted) abort();
  let onOpen: (message: unknown) => void = () => undefined;
  const open = new Promise<void>((resolve) => {
    onOpen = (message) => {
      if (client.isOrigin(message as SubscribeMessage)) resolve();
    };
  });
  subscribe(CHANNEL, onOpen);
  try {
    await Promise.race([open, client.responded]);
  } catch (error) {
    await client.close();
    signal?.throwIfAborted();
    throw error;
  } finally {
    unsubscribe(CHANNEL, onOpen);
  }
  return client.results;
}

async function openClient(
  target: Target,
  request: SubscribeRequest<unknown, object>,
): Promise<SubscriptionClient> {
  const params = await paramsOf(request);
  if (request.transport === 'event-stream') {
    return new EventStreamClient(openConnection(target, request), params, request);
  }
  if (target.isApp) {
    const message =
      'an Express app has no WebSockets; pass the server of attachSubscriptions(server, handler), which need not listen, or use transport: "event-stream"';
    throw optionError(SUBSCRIBE_OPTIONS, message);
  }
  await serveWebSockets(target);
  if (target.server.listenerCount('upgrade') === 0) {
    const message =
      'the server has no WebSockets; call attachSubscriptions(server, handler) before, or use transport: "event-stream"';
    throw optionError(SUBSCRIBE_OPTIONS, message);
  }
  const { WebSocket } = await import('ws');
  return new WebSocketClient(WebSocket, openConnection(target, request), params, request);
}
