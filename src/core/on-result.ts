import type { ResultAdditions, ResultDetails } from '../../types/operation.ts';
import { inTime } from '../execution/deadline.ts';
import {
  type ExecutionInputs,
  type ExecutionOutcome,
  type OnResult,
  type PreparedOperation,
  withNativePromise,
} from '../execution/types.ts';
import { wrongReturnValue } from '../options/rules.ts';
import { GRAPHQL_OPTIONS } from '../options/scopes.ts';
import { caught, isObject, settle } from '../options/values.ts';
import { withExtensions } from './admission.ts';
import { isPublicError } from './errors.ts';
import type { Extension, ExtensionParts } from './extension.ts';

/** Creates the extension of the option `onResult`, which sees the results of queries and mutations before they are sent. */
export function createResultHook(
  { onResult }: { readonly onResult?: OnResult | undefined },
  { reportError }: Pick<ExtensionParts, 'reportError'>,
): Extension {
  if (onResult === undefined) return {};
  return {
    prepare({ operation }) {
      if (operation.operation === 'subscription') return undefined;
      return {
        admit(call) {
          call.willExtend();
          return undefined;
        },
        around: (call, prepared, next) =>
          settle(next(), (outcome) => {
            const add = () =>
              settle(
                inTime(
                  prepared.timeLimit,
                  withNativePromise(onResult(detailsOf(call, prepared, outcome))),
                  call.origin,
                ),
                (additions) => withAdditions(outcome, additions, call),
              );
            // The operation was executed: its result is not lost.
            return caught(add, (error) => {
              reportError(error, call.origin ?? { transport: 'http', ...NO_ORIGIN });
              return outcome;
            });
          }),
      };
    },
  };
}

const NO_ORIGIN = { operationName: undefined, request: undefined, socket: undefined };

function detailsOf(
  { contextValue, caller, origin, exchange }: ExecutionInputs,
  { document, operation }: PreparedOperation,
  outcome: ExecutionOutcome,
): ResultDetails<unknown> {
  return {
    document,
    operation,
    operationName: operation.name?.value,
    request: origin?.socket ?? origin?.request,
    context: contextValue,
    caller,
    transport: origin?.transport ?? 'http',
    kind: outcome.kind,
    errors: outcome.errors,
    status: exchange === undefined ? undefined : statusOf(outcome),
  };
}

/** The status of the response, which the option `statusCodes` may still change. */
function statusOf({ kind, errors, status }: ExecutionOutcome): number {
  for (const error of errors) {
    const http = isPublicError(error) ? error.extensions['http'] : undefined;
    if (isObject(http) && typeof http['status'] === 'number') return http['status'];
  }
  return kind === 'refused' ? (status ?? 400) : 200;
}

function withAdditions(
  outcome: ExecutionOutcome,
  additions: ResultAdditions,
  { exchange }: ExecutionInputs,
): ExecutionOutcome {
  if (additions === undefined) return outcome;
  const { extensions, headers = {}, ...others } = isObject(additions) ? additions : { others: additions };
  const text = extensions === undefined ? undefined : JSON.stringify(extensions);
  if (Object.keys(others).length > 0 || !isObject(headers) || text?.startsWith('{') === false)
    throw wrongReturnValue(
      GRAPHQL_OPTIONS,
      'onResult',
      additions,
      'undefined, or an object with "extensions" or "headers"',
    );
  for (const [name, value] of Object.entries(headers)) {
    if (exchange === undefined || exchange.res.headersSent) break;
    if (name.toLowerCase() === 'set-cookie') exchange.res.appendHeader(name, value);
    else exchange.res.setHeader(name, value);
  }
  return withExtensions(outcome, text === '{}' ? undefined : text);
}
