import type { InjectedResponse, OperationResponse, OperationResult } from '../../types/testing.ts';
import { INJECT_OPTIONS } from '../options/scopes.ts';
import { isObject } from '../options/values.ts';
import {
  closeConnection,
  openConnection,
  requestHeaders,
  sendRequest,
  type Target,
  targetOf,
} from './connection.ts';
import { httpMessage, type Message, operationMessage, ReceivedResponse, readBody } from './messages.ts';
import { type AnyRequest, checkRequest, isOperation } from './options.ts';

/** Sends one request to a target and returns its response. */
export async function injectRequest(
  target: unknown,
  given: unknown,
): Promise<InjectedResponse | OperationResponse<unknown>> {
  const resolved = targetOf(INJECT_OPTIONS, target);
  const request = checkRequest(given);
  if (!isOperation(request)) return exchange(resolved, await httpMessage(request), request);
  const response = await exchange(resolved, await operationMessage(request), request);
  return Object.assign(response, resultOf(response));
}

async function exchange(target: Target, message: Message, request: AnyRequest): Promise<InjectedResponse> {
  const { signal } = request;
  signal?.throwIfAborted();
  const connection = openConnection(target, request);
  const disconnect = (): void => void connection.client.destroy();
  signal?.addEventListener('abort', disconnect);
  try {
    const headers = requestHeaders({ connection: 'keep-alive', ...message.headers }, request);
    const response = await sendRequest(connection, message, headers);
    const body = await readBody(response);
    await closeConnection(connection);
    if (connection.server.handlerError === undefined) return new ReceivedResponse(response, body);
    throw connection.server.handlerError.error;
  } catch (error) {
    await closeConnection(connection);
    signal?.throwIfAborted();
    throw connection.server.handlerError?.error ?? error;
  } finally {
    signal?.removeEventListener('abort', disconnect);
  }
}

/** The members of the GraphQL result that a response contains, if it contains one. */
function resultOf(response: InjectedResponse): OperationResult<unknown> {
  if (!/^application\/(graphql-response\+)?json\b/.test(response.headers['content-type'] ?? '')) return {};
  const result = response.json();
  if (!isObject(result)) return {};
  const members = Object.entries(result).filter(([name]) => ['data', 'errors', 'extensions'].includes(name));
  return Object.fromEntries(members);
}
