import type { HttpRequest, OperationRequest, TypedDocument } from '../../../types/testing.ts';
import { isObject } from '../../options/rules.ts';
import { takeFiles } from './files.ts';

/** The bytes of a request body. */
export type Body = Buffer | AsyncIterable<string | Uint8Array> | undefined;

/** A request before it is sent. */
export interface Message {
  readonly method: string;
  readonly path: string;
  /** The headers that the body needs; those of the user have precedence. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Body;
}

/** The members of the JSON of an operation. */
export interface OperationParams {
  readonly query: string;
  readonly variables: object | undefined;
  readonly operationName: string | undefined;
  readonly extensions: object | undefined;
}

/** Any operation that `inject` and `subscribe` accept. */
export type AnyOperation = OperationRequest<unknown, object>;

export const GRAPHQL_PATH = '/graphql';

/** Returns the members of the request of an operation; the text of a document that was parsed. */
export async function paramsOf(request: AnyOperation): Promise<OperationParams> {
  const { query, variables, operationName, extensions } = request;
  return { query: await textOf(query), variables, operationName, extensions };
}

async function textOf(query: string | TypedDocument<unknown, object>): Promise<string> {
  if (typeof query === 'string') return query;
  // Tests of static files need not install graphql.
  const { print } = await import('graphql');
  return print(query as Parameters<typeof print>[0]);
}

/** Creates the request of an operation. */
export async function operationMessage(request: AnyOperation): Promise<Message> {
  const { path = GRAPHQL_PATH, method = 'POST' } = request;
  const params = await paramsOf(request);
  if (method === 'GET') {
    return { method, path: withQuery(path, params), headers: {}, body: undefined };
  }
  const { files, json } = takeFiles(params);
  if (files.length === 0) return { method, path, ...jsonBody(json) };
  const form = new FormData();
  form.append('operations', JSON.stringify(json));
  form.append('map', JSON.stringify(Object.fromEntries(files.map(({ paths }, index) => [index, paths]))));
  for (const [index, { file }] of files.entries()) form.append(`${index}`, file);
  return { method, path, ...(await encodeBody(form)) };
}

/** Creates any other request. */
export async function httpMessage({ method, path = '/', body }: HttpRequest): Promise<Message> {
  const encoded = body === undefined ? { headers: {}, body } : await encodeBody(body);
  return { method: method ?? (body === undefined ? 'GET' : 'POST'), path, ...encoded };
}

function withQuery(path: string, { query, variables, operationName, extensions }: OperationParams): string {
  const search = new URLSearchParams({ query });
  if (operationName !== undefined) search.set('operationName', operationName);
  if (variables !== undefined) search.set('variables', JSON.stringify(variables));
  if (extensions !== undefined) search.set('extensions', JSON.stringify(extensions));
  return `${path}${path.includes('?') ? '&' : '?'}${search}`;
}

type Encoded = Pick<Message, 'headers' | 'body'>;

function jsonBody(value: unknown): Encoded {
  return { headers: { 'content-type': 'application/json' }, body: Buffer.from(JSON.stringify(value)) };
}

async function encodeBody(body: NonNullable<HttpRequest['body']>): Promise<Encoded> {
  if (body instanceof ArrayBuffer) return { headers: {}, body: Buffer.from(body) };
  if (ArrayBuffer.isView(body)) {
    return { headers: {}, body: Buffer.from(body.buffer, body.byteOffset, body.byteLength) };
  }
  if (isAsyncIterable(body)) return { headers: {}, body };
  if (!isBodyInit(body)) return jsonBody(body);
  // `fetch` sends a body with the same type and bytes.
  const response = new Response(body);
  const type = response.headers.get('content-type');
  const bytes = Buffer.from(await response.arrayBuffer());
  return { headers: type === null ? {} : { 'content-type': type }, body: bytes };
}

const isAsyncIterable = (body: unknown): body is AsyncIterable<string | Uint8Array> =>
  isObject(body) && Symbol.asyncIterator in body;

const isBodyInit = (body: unknown): body is string | Blob | FormData | URLSearchParams =>
  typeof body === 'string' ||
  body instanceof Blob ||
  body instanceof FormData ||
  body instanceof URLSearchParams;
