import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import type { HttpRequest, InjectedResponse, OperationRequest, TypedDocument } from '../../types/testing.ts';
import { isObject } from '../options/values.ts';

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

/** A file with the places where the GraphQL multipart request specification inserts it. */
interface MappedFile {
  readonly file: Blob;
  readonly paths: string[];
}

/** Replaces each file in a value by null, and returns the files with their paths. A file may occur repeatedly. */
function takeFiles(value: object): { readonly json: unknown; readonly files: readonly MappedFile[] } {
  const files = new Map<Blob, string[]>();
  const copy = (member: unknown, path: string): unknown => {
    if (member instanceof Blob) {
      const paths = files.get(member) ?? [];
      files.set(member, [...paths, path]);
      return null;
    }
    if (Array.isArray(member)) return member.map((item, index) => copy(item, `${path}.${index}`));
    if (!isPlain(member)) return member;
    const entries = Object.entries(member);
    return Object.fromEntries(entries.map(([name, item]) => [name, copy(item, join(path, name))]));
  };
  const json = copy(value, '');
  return { json, files: [...files].map(([file, paths]) => ({ file, paths })) };
}

const join = (path: string, name: string): string => (path === '' ? name : `${path}.${name}`);

/** Other objects, such as dates, have their own JSON. */
function isPlain(value: unknown): value is object {
  if (typeof value !== 'object' || value === null) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === null || Object.getPrototypeOf(prototype) === null;
}

/** The characters of a body in an error message. */
const EXCERPT = 200;

/** Receives the whole body of a response. */
export async function readBody(response: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of response) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}

/** A response that was received completely. */
export class ReceivedResponse implements InjectedResponse {
  readonly status: number;
  readonly statusText: string;
  readonly headers: IncomingHttpHeaders;
  readonly rawHeaders: readonly (readonly [name: string, value: string])[];
  readonly trailers: Readonly<Record<string, string | undefined>>;
  readonly cookies: Readonly<Record<string, string>>;
  readonly body: Buffer;

  constructor(message: IncomingMessage, body: Buffer) {
    // Both are set in responses that a client receives.
    this.status = message.statusCode as number;
    this.statusText = message.statusMessage as string;
    this.headers = message.headers;
    this.rawHeaders = pairsOf(message.rawHeaders);
    this.trailers = message.trailers;
    this.cookies = parseSetCookie(message.headers['set-cookie'] ?? []);
    this.body = body;
  }

  get text(): string {
    return this.body.toString();
  }

  json<Value = unknown>(): Value {
    try {
      return JSON.parse(this.text);
    } catch (cause) {
      const type = this.headers['content-type'] ?? 'no Content-Type';
      const start = this.text.slice(0, EXCERPT);
      const message = `The body of the response is not JSON (status ${this.status}, ${type}): ${start}`;
      throw new Error(message, { cause });
    }
  }
}

function pairsOf(list: readonly string[]): (readonly [string, string])[] {
  return list.flatMap((name, index) => (index % 2 === 0 ? [[name, list[index + 1] as string] as const] : []));
}

/** Returns the value of the `Cookie` header (RFC 6265 §4.2.1). */
export function cookieHeader(cookies: Readonly<Record<string, string>>): string {
  return Object.entries(cookies)
    .map(([name, value]) => `${name}=${value}`)
    .join('; ');
}

/** Returns the cookies that a response sets, by name, without those that it deletes (RFC 6265 §5.2). */
function parseSetCookie(lines: readonly string[]): Record<string, string> {
  const cookies = new Map<string, string>();
  for (const line of lines) {
    const [pair = '', ...attributes] = line.split(';');
    const equals = pair.indexOf('=');
    if (equals <= 0) continue;
    const name = pair.slice(0, equals).trim();
    if (isExpired(attributes)) cookies.delete(name);
    else cookies.set(name, pair.slice(equals + 1).trim());
  }
  return Object.fromEntries(cookies);
}

/** `Max-Age` has precedence over `Expires`. */
function isExpired(attributes: readonly string[]): boolean {
  const values = new Map(attributes.map((attribute) => splitAttribute(attribute)));
  const maxAge = values.get('max-age');
  if (maxAge !== undefined) return Number(maxAge) <= 0;
  const expires = values.get('expires');
  return expires !== undefined && Date.parse(expires) <= Date.now();
}

function splitAttribute(attribute: string): [name: string, value: string] {
  const [name = '', ...value] = attribute.split('=');
  return [name.trim().toLowerCase(), value.join('=').trim()];
}
