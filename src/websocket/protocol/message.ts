import { assertJsonTextWithinLimits } from '../../http/body/json-limits.ts';
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

/** Values of a message that are not variables. */
const MAX_OTHER_VALUES = 1000;

/**
 * Parses a message; undefined for text that is not JSON, or that contains more values than any operation may.
 */
export function parseMessage(text: string, maxVariables: number): unknown {
  try {
    assertJsonTextWithinLimits(text, maxVariables + MAX_OTHER_VALUES);
    return JSON.parse(text);
  } catch {
    return undefined;
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
