import type { GraphQLParams } from '../../execution/types.ts';
import { HttpError } from '../../http/reply/http-error.ts';

/** The four parameters, as text, of a query string; everything else in it is ignored. */
interface RawParams {
  query?: string;
  operationName?: string;
  variables?: string;
  extensions?: string;
}

const NAMES = new Set<string>(['query', 'operationName', 'variables', 'extensions']);

/** GraphQL parameters out of a request target (GraphQL over HTTP, "GET"). An empty parameter counts as absent. */
export function paramsOfUrl(url: string): GraphQLParams {
  const raw = parseSearch(url);
  return {
    query: requireQuery(raw.query),
    operationName: raw.operationName,
    variables: jsonObject('variables', raw.variables),
    extensions: jsonObject('extensions', raw.extensions),
  };
}

/** GraphQL parameters out of parsed JSON; unknown members are ignored, wrong types are refused. */
export function paramsOfBody(body: unknown): GraphQLParams {
  if (typeof body !== 'object' || body === null || Array.isArray(body)) {
    throw malformed('The request body must be a JSON object');
  }
  // Own members only: nothing inherited may pass for a parameter.
  const member = (name: string): unknown =>
    Object.hasOwn(body, name) ? (body as Record<string, unknown>)[name] : undefined;
  return {
    query: requireQuery(member('query')),
    operationName: optionalText(member('operationName')),
    variables: optionalObject('variables', member('variables')),
    extensions: optionalObject('extensions', member('extensions')),
  };
}

function parseSearch(url: string): RawParams {
  const raw: Record<string, string> = {};
  const start = url.indexOf('?');
  if (start === -1) return raw;
  for (const pair of url.slice(start + 1).split('&')) {
    const equals = pair.indexOf('=');
    const name = decode(equals === -1 ? pair : pair.slice(0, equals));
    const value = equals === -1 ? '' : pair.slice(equals + 1);
    if (!NAMES.has(name) || value === '') continue;
    if (raw[name] !== undefined) throw malformed(`The parameter "${name}" is given more than once`);
    raw[name] = decode(value);
  }
  return raw;
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text.includes('+') ? text.replaceAll('+', ' ') : text);
  } catch {
    throw malformed('The query string has a broken percent escape');
  }
}

function requireQuery(query: unknown): string {
  if (typeof query === 'string' && query !== '') return query;
  throw malformed(
    query === undefined || query === null || query === ''
      ? 'The parameter "query" is missing'
      : 'The parameter "query" must be a string',
  );
}

function optionalText(value: unknown): string | undefined {
  if (value === undefined || value === null || value === '') return undefined;
  if (typeof value === 'string') return value;
  throw malformed('The parameter "operationName" must be a string');
}

function optionalObject(name: string, value: unknown): Record<string, unknown> | undefined {
  if (value === undefined || value === null) return undefined;
  if (typeof value === 'object' && !Array.isArray(value)) return value as Record<string, unknown>;
  throw malformed(`The parameter "${name}" must be an object`);
}

function jsonObject(name: string, text: string | undefined): Record<string, unknown> | undefined {
  if (text === undefined) return undefined;
  try {
    return optionalObject(name, JSON.parse(text));
  } catch (error) {
    if (error instanceof HttpError) throw error;
    throw malformed(`The parameter "${name}" is not valid JSON`);
  }
}

/** A request that is not well-formed: 400, or 422 by the newest draft. */
export function malformed(message: string): HttpError {
  return new HttpError(400, message, { code: 'BAD_REQUEST' });
}
