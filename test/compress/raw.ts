import { once } from 'node:events';
import * as http from 'node:http';
import zlib from 'node:zlib';
import * as kit from '../kit.ts';

/** The codings that this version of Node can create. */
export const CODINGS: readonly string[] = [
  'zstdCompressSync' in zlib ? 'zstd' : undefined,
  'br',
  'gzip',
].filter((coding) => coding !== undefined);

interface RawResponse {
  readonly status: number;
  readonly headers: http.IncomingHttpHeaders;
  readonly bytes: Buffer;
  /** The decoded body. */
  readonly text: string;
}

interface RawRequest {
  readonly method?: string;
  readonly headers?: http.OutgoingHttpHeaders;
  readonly body?: string;
}

const { zstdDecompressSync }: { readonly zstdDecompressSync?: (bytes: Buffer) => Buffer } = Object(zlib);

/** Decodes a body. */
function decode(bytes: Buffer, coding: string | undefined): string {
  if (coding === undefined || coding === 'identity' || bytes.length === 0) return bytes.toString();
  if (coding === 'br') return zlib.brotliDecompressSync(bytes).toString();
  if (coding === 'gzip') return zlib.gunzipSync(bytes).toString();
  if (coding === 'zstd' && zstdDecompressSync !== undefined) return zstdDecompressSync(bytes).toString();
  throw new Error(`unknown coding ${coding}`);
}

/** Sends a request without an agent, and decodes the response. */
export async function send(
  url: string,
  { method = 'GET', headers = {}, body }: RawRequest = {},
): Promise<RawResponse> {
  const req = http.request(url, { method, headers, agent: false });
  req.end(body);
  const [res] = (await once(req, 'response')) as [http.IncomingMessage];
  const chunks: Buffer[] = [];
  for await (const chunk of res) chunks.push(chunk as Buffer);
  const bytes = Buffer.concat(chunks);
  const text = decode(bytes, res.headers['content-encoding']);
  return { status: res.statusCode ?? 0, headers: res.headers, bytes, text };
}

/** Sends an operation by POST. */
export const post = (
  url: string,
  params: unknown,
  headers: http.OutgoingHttpHeaders = {},
): Promise<RawResponse> =>
  send(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify(params),
  });

/** Serves a handler, and returns its URL. */
export const listen = async (handler: http.RequestListener): Promise<string> =>
  (await kit.listen(handler, '/graphql')).url;
