import type { HttpRequest, SubscribeRequest } from '../../types/testing.ts';
import {
  isListOf,
  type OptionScope,
  oneOf,
  type Rule,
  type Rules,
  resolveOptions,
  rule,
  wrongArgument,
} from '../options/rules.ts';
import { INJECT_OPTIONS, SUBSCRIBE_OPTIONS } from '../options/scopes.ts';
import { isObject, isString } from '../options/values.ts';
import type { AnyOperation } from './messages.ts';

const isDocument = (value: unknown): boolean =>
  isString(value) || (isObject(value) && value['kind'] === 'Document');
const isToken = (value: unknown): boolean => isString(value) && /^[!#$%&'*+.^`|~\w-]+$/.test(value);
const isPath = (value: unknown): boolean => isString(value) && /^(\/|\*$|https?:)/.test(value);
const isStrings = (value: unknown): boolean => isObject(value) && Object.values(value).every(isString);
/** Node would fail on other values. `Headers` and maps have no own members. */
const isHeaders = (value: unknown): boolean =>
  isObject(value) && !(Symbol.iterator in value) && Object.values(value).every(isHeader);
const isHeader = (value: unknown): boolean =>
  value === undefined || isString(value) || typeof value === 'number' || isListOf(isString)(value);
const hasBytes = (value: unknown): boolean => !/^(?:function|symbol|bigint)$/.test(typeof value);

const optional = <T>(accepts: (value: unknown) => boolean, accepted: string): Rule<T | undefined> =>
  rule<T | undefined>(undefined, accepts, accepted);

const object = optional<object>(isObject, 'an object');

const connectionRules = {
  path: optional<string>(isPath, 'a path that begins with a slash'),
  headers: optional<object>(isHeaders, 'an object of strings, numbers or lists of strings by name'),
  cookies: optional<object>(isStrings, 'an object of strings by name'),
  remoteAddress: optional<string>(isString, 'an IP address'),
  signal: optional<AbortSignal>((value) => value instanceof AbortSignal, 'an AbortSignal'),
};

const operationRules = {
  ...connectionRules,
  query: optional<unknown>(isDocument, 'the text of a document, or a DocumentNode'),
  variables: object,
  operationName: optional<string>(isString, 'a string'),
  extensions: object,
};

const injectedOperationRules = { ...operationRules, method: oneOf('POST', 'GET') };

const httpRules = {
  ...connectionRules,
  method: optional<string>(isToken, 'the name of a method'),
  body: optional<unknown>(hasBytes, 'text, bytes, a Blob, FormData, URLSearchParams, an iterable, or JSON'),
};

const subscribeRules = {
  ...operationRules,
  connectionParams: object,
  transport: oneOf('websocket', 'event-stream'),
};

/** A request of `inject`; one with a document is an operation. */
export type AnyRequest = AnyOperation | HttpRequest;

/** Whether a request is an operation, which its member `query` decides. */
export const isOperation = (request: AnyRequest): request is AnyOperation =>
  'query' in request && request.query !== undefined;

/** @throws TypeError (code `ERR_OPTION`) for an unknown member or a wrong value. */
export function checkRequest(given: unknown): AnyRequest {
  const request = given ?? {};
  const isGraphQL = isObject(request) && request['query'] !== undefined;
  if (isGraphQL) check(INJECT_OPTIONS, request, injectedOperationRules);
  else check(INJECT_OPTIONS, request, httpRules);
  return request as AnyRequest;
}

/** @throws TypeError (code `ERR_OPTION`) for an unknown member or a wrong value. */
export function checkSubscription(given: unknown): SubscribeRequest<unknown, object> {
  check(SUBSCRIBE_OPTIONS, given, subscribeRules);
  const request = given as SubscribeRequest<unknown, object>;
  if (request.query !== undefined) return request;
  throw wrongArgument(SUBSCRIBE_OPTIONS, 'request', given, 'an object with the document as "query"');
}

function check<Resolved>(scope: OptionScope, given: unknown, rules: Rules<Resolved>): void {
  if (!isObject(given)) throw wrongArgument(scope, 'request', given, 'an object');
  resolveOptions(scope, given, rules);
}
