export { ConnectionClosedError } from '../src/testing/subscribe.ts';

import { injectRequest } from '../src/testing/inject.ts';
import { startSubscription } from '../src/testing/subscribe.ts';
import { checkTransport } from '../src/testing/transport-checks.ts';
import type {
  HttpRequest,
  InjectedResponse,
  InjectTarget,
  OperationRequest,
  OperationResponse,
  SubscribeRequest,
  SubscriptionResults,
  TestTransportOptions,
  TransportFactory,
} from '../types/testing.ts';

export type * from '../types/testing.ts';

/**
 * Sends a GraphQL operation, or any other HTTP request, to a handler, an app or a server within the process: no
 * port is opened. Requests and responses go through the HTTP code of Node, and have the bytes of a real connection.
 *
 * @param target - a handler of `graphqlHTTP` or `staticFiles`, another middleware, an Express app, or a server
 * that need not listen
 * @param request - with `query` a GraphQL operation, otherwise any request
 * @returns the response, with `data`, `errors` and `extensions` for an operation. It rejects with an exception
 * of the handler, with an error without a status that the handler passes to `next`, and if the connection is
 * closed before the end of the response
 * @throws TypeError (code `ERR_OPTION`) for a wrong target, an unknown member or a wrong value
 * @example
 * const { data } = await inject(handler, { query: '{ hello }' });
 */
export function inject<Data = Record<string, unknown>, Variables extends object = Record<string, unknown>>(
  target: InjectTarget,
  request: OperationRequest<Data, Variables>,
): Promise<OperationResponse<Data>>;
export function inject(target: InjectTarget, request?: HttpRequest): Promise<InjectedResponse>;
export function inject(target: InjectTarget, request?: unknown): Promise<InjectedResponse> {
  return injectRequest(target, request);
}

/**
 * Starts a subscription, or another operation, over a WebSocket within the process. The connection has the
 * context, limits and masked errors of a real one.
 *
 * @param target - a server with `attachSubscriptions`, which need not listen, or a handler of `graphqlHTTP`.
 * With `transport: 'event-stream'` also an Express app
 * @returns the results. The promise resolves when the source stream is open, so that events published from then
 * on are received. It rejects if the server refuses the connection
 * @throws TypeError (code `ERR_OPTION`) for a wrong target, an unknown member or a wrong value
 * @example
 * const results = await subscribe(handler, { query: 'subscription { ticks }' });
 * const { value } = await results.next();
 * await results.return();
 */
export function subscribe<Data = Record<string, unknown>, Variables extends object = Record<string, unknown>>(
  target: InjectTarget,
  request: SubscribeRequest<Data, Variables>,
): Promise<SubscriptionResults<Data>>;
export function subscribe(target: InjectTarget, request: unknown): Promise<SubscriptionResults<unknown>> {
  return startSubscription(target, request);
}

/**
 * Checks that a transport for `createPubSub` keeps the rules of `EventTransport`: with real connections, in a few
 * seconds.
 *
 * @param create - creates a transport. It is called for each of the two processes of a check
 * @returns the names of the checks that were made. It rejects with an error (code `ERR_TRANSPORT`) that has a line
 * for each broken rule
 * @throws TypeError (code `ERR_OPTION`) for an unknown option or a wrong value, from the promise
 * @example
 * const keepsTheRules = () => testTransport(() => createTransport());
 */
export function testTransport(
  create: TransportFactory,
  options?: TestTransportOptions,
): Promise<readonly string[]> {
  return checkTransport(create, options);
}
