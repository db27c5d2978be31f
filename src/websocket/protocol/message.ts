import { readReference } from '../../core/documents/reference.ts';
import type { GraphQLParams } from '../../execution/types.ts';
import { assertJsonTextWithinLimits } from '../../http/body/json-limits.ts';
import { HttpError } from '../../http/reply/http-error.ts';
import { isObject } from '../../options/rules.ts';

/** A message to the client. */
export interface ServerMessage {
  readonly type: string;
  readonly id?: unknown;
  readonly payload?: unknown;
}

/** The payload of the message that starts an operation, after its types were checked. */
export interface OperationPayload {
  readonly query: string;
  readonly operationName?: string | null | undefined;
  readonly variables?: Readonly<Record<string, unknown>> | null | undefined;
  readonly extensions?: Readonly<Record<string, unknown>> | null | undefined;
}

/** The settings of messages. */
export interface MessageSettings {
  /** The limit of values in the variables of one operation. */
  readonly maxVariables: number;
  /** Whether operations may name their documents by id. */
  readonly acceptsIds: boolean;
}

/** Values of a message that are not variables. */
const MAX_OTHER_VALUES = 1000;

/**
 * Parses a message; undefined for text that is not JSON, or that contains more values than any operation may.
 */
export function parseMessage(text: string, { maxVariables, acceptsIds }: MessageSettings): unknown {
  try {
    assertJsonTextWithinLimits(text, maxVariables + MAX_OTHER_VALUES);
    const message: unknown = JSON.parse(text);
    return acceptsIds ? withQuery(message) : message;
  } catch {
    return undefined;
  }
}

/** Adds an empty `query` to a message that starts an operation by the id of its document. */
function withQuery(message: unknown): unknown {
  if (!isObject(message) || (message['type'] !== 'subscribe' && message['type'] !== 'start')) return message;
  const { payload } = message;
  if (!isObject(payload) || (payload['query'] ?? undefined) !== undefined) return message;
  return { ...message, payload: { ...payload, query: '' } };
}

/**
 * Returns the parameters of an operation, or the client's mistake. They stay in memory until the operation ends, so
 * they have no `extensions`.
 */
export function paramsOf(
  payload: OperationPayload,
  { acceptsIds }: Pick<MessageSettings, 'acceptsIds'>,
): GraphQLParams | HttpError {
  const { query, operationName, variables, extensions } = payload;
  const members: object = payload;
  try {
    const member = (name: string): unknown =>
      Object.hasOwn(members, name) ? (members as Record<string, unknown>)[name] : undefined;
    return {
      query,
      document: acceptsIds ? readReference(member, isObject(extensions) ? extensions : undefined) : undefined,
      operationName: operationName ?? undefined,
      variables: variables ?? undefined,
      extensions: undefined,
    };
  } catch (error) {
    if (error instanceof HttpError) return error;
    throw error;
  }
}

export function isOperationPayload(value: unknown): value is OperationPayload {
  if (!isObject(value)) return false;
  const { query, variables, operationName } = value;
  return (
    typeof query === 'string' &&
    (variables === undefined || variables === null || isObject(variables)) &&
    (operationName === undefined || operationName === null || typeof operationName === 'string')
  );
}
