import type { FetcherParams } from '@graphiql/toolkit';
import { meros } from 'meros/browser';
import { refusal } from './answer.ts';
import { endpoint } from './settings.ts';

const SINGLE = 'application/graphql-response+json, application/json;q=0.9';
const INCREMENTAL = `multipart/mixed, multipart/mixed;deferSpec=20220824, ${SINGLE}`;

/** Sends an operation with POST; an answer in several parts (`@defer`, `@stream`) is an iterator over them. */
export async function sendOverHttp(
  params: FetcherParams,
  headers: Record<string, string>,
  incremental: boolean,
) {
  const stop = new AbortController();
  const response = await fetch(endpoint, {
    method: 'POST',
    credentials: 'same-origin',
    signal: stop.signal,
    headers: { accept: incremental ? INCREMENTAL : SINGLE, 'content-type': 'application/json', ...headers },
    body: JSON.stringify(params),
  });
  const parts = await meros<object>(response, { multiple: true });
  return Symbol.asyncIterator in parts ? readParts(parts, stop) : readWhole(parts);
}

/** GraphQL's own answers are shown as they are; a proxy's page or a login's redirect with its status and first words. */
async function readWhole(response: Response) {
  const text = await response.text();
  const status = `HTTP ${response.status} ${response.statusText}`.trim();
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch {
    const excerpt = text.length > 1000 ? `${text.slice(0, 1000)}…` : text;
    const type = response.headers.get('content-type') ?? 'no content type';
    return refusal(`${status}: the answer is not JSON (${type})`, { body: excerpt });
  }
  const isResult = typeof body === 'object' && body !== null && ('data' in body || 'errors' in body);
  return isResult ? (body as never) : refusal(`${status}: the answer is not a GraphQL result`, { body });
}

async function* readParts(
  parts: AsyncIterable<readonly { json: boolean; body: unknown }[]>,
  stop: AbortController,
) {
  try {
    for await (const chunk of parts) {
      for (const part of chunk) {
        yield (
          part.json ? part.body : refusal('A part of the answer is not JSON', { body: String(part.body) })
        ) as never;
      }
    }
  } finally {
    stop.abort();
  }
}
