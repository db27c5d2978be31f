import type { FetcherParams } from '@graphiql/toolkit';
import { type ExecutionResult, GraphQLError } from 'graphql';
import { meros } from 'meros/browser';
import { type Run, startRun } from './activity.ts';
import { endpoint } from './settings.ts';

const SINGLE = 'application/graphql-response+json, application/json;q=0.9';
const INCREMENTAL = `multipart/mixed;incrementalSpec=v0.2, multipart/mixed;deferSpec=20220824, multipart/mixed;q=0.9, ${SINGLE}`;

/** Sends an operation. A response with several parts (`@defer`, `@stream`) becomes an iterator of the parts. */
export async function sendOverHttp(
  params: FetcherParams,
  headers: Record<string, string>,
  { method, incremental, run }: { method: 'POST' | 'QUERY'; incremental: boolean; run: Run | undefined },
) {
  const stop = new AbortController();
  const response = await send({
    method,
    signal: stop.signal,
    headers: { accept: incremental ? INCREMENTAL : SINGLE, 'content-type': 'application/json', ...headers },
    body: JSON.stringify(params),
  });
  if (response === undefined) return unreachable(run);
  const parts = await meros<ExecutionResult>(response, { multiple: true });
  if (!(Symbol.asyncIterator in parts)) return readWhole(parts, run);
  const results = readParts(parts, stop);
  return run?.count('part', results) ?? results;
}

/** Sends a form of the GraphQL multipart request specification, and tells which part of it has been sent. */
export async function sendForm(
  body: FormData,
  headers: Record<string, string>,
  onProgress: (part: number) => void,
): Promise<ExecutionResult> {
  const run = startRun();
  const response = await new Promise<Response | undefined>((resolve) => {
    const request = new XMLHttpRequest();
    request.upload.addEventListener('progress', ({ loaded, total }) => onProgress(loaded / total));
    request.addEventListener('load', () => {
      const { status, statusText, responseText } = request;
      const type = request.getResponseHeader('content-type') ?? '';
      resolve(new Response(responseText || null, { status, statusText, headers: { 'content-type': type } }));
    });
    for (const event of ['error', 'abort']) request.addEventListener(event, () => resolve(undefined));
    request.open('POST', endpoint);
    // The header makes browsers send a preflight request, which servers with CSRF protection require.
    const all = { accept: SINGLE, 'graphql-require-preflight': 'true', ...headers };
    for (const [name, value] of Object.entries(all)) request.setRequestHeader(name, value);
    request.send(body);
  });
  return response === undefined ? unreachable(run) : readWhole(response, run);
}

/** Sends a request. Undefined if there is no response; the browser gives no reason. */
async function send(request: RequestInit): Promise<Response | undefined> {
  try {
    return await fetch(endpoint, { credentials: 'same-origin', ...request });
  } catch (error) {
    if (error instanceof TypeError) return undefined;
    throw error;
  }
}

function unreachable(run: Run | undefined): ExecutionResult {
  run?.fail();
  const { origin } = new URL(endpoint);
  const hint = origin === location.origin ? '' : ' Or its CORS policy does not allow this page.';
  return errorResult(`The server at ${endpoint} cannot be reached. Is it running?${hint}`);
}

/** Returns a GraphQL result unchanged, and converts any other response, such as a proxy's error page, to an error. */
async function readWhole(response: Response, run: Run | undefined): Promise<ExecutionResult> {
  const text = await response.text();
  const status = `HTTP ${response.status} ${response.statusText}`.trim();
  run?.respond(`${response.status} ${response.statusText}`.trim(), text);
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch {
    const excerpt = text.length > 1000 ? `${text.slice(0, 1000)}…` : text;
    const type = response.headers.get('content-type') ?? 'no content type';
    return errorResult(`${status}: the response is not JSON (${type})`, { body: excerpt });
  }
  return isResult(body) ? body : errorResult(`${status}: the response is not a GraphQL result`, { body });
}

function isResult(body: unknown): body is ExecutionResult {
  return typeof body === 'object' && body !== null && ('data' in body || 'errors' in body);
}

type IncrementalPart = { json: true; body: ExecutionResult } | { json: false; body: unknown };

async function* readParts(parts: AsyncIterable<readonly IncrementalPart[]>, stop: AbortController) {
  try {
    for await (const chunk of parts) {
      for (const part of chunk) {
        if (part.json) yield part.body;
        else yield errorResult('A part of the response is not JSON', { body: String(part.body) });
      }
    }
  } finally {
    stop.abort();
  }
}

/** Creates a GraphQL result with one error that was detected in the browser. */
export function errorResult(message: string, extensions?: Record<string, unknown>): ExecutionResult {
  return { errors: [new GraphQLError(message, { extensions })] };
}
