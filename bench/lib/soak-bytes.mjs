// Bytes of the requests of malicious clients.
import { gzipSync } from 'node:zlib';
import { random } from './document-genes.mjs';

export const pick = (list) => list[Math.floor(random() * list.length)];
export const sleep = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));
/** The local address of malicious clients, so that limits per address do not refuse normal ones. */
export const ADDRESS = '127.0.0.2';
const HEAD = 'Host: 127.0.0.1\r\n';
export const GET = (path, headers = '') => `GET ${path} HTTP/1.1\r\n${HEAD}${headers}\r\n`;
export const POST = (type, body, length = Buffer.byteLength(body)) =>
  Buffer.concat([
    Buffer.from(
      `POST /graphql HTTP/1.1\r\n${HEAD}Content-Type: ${type}\r\nContent-Length: ${length}\r\n\r\n`,
    ),
    Buffer.from(body),
  ]);
export const json = (value, length) =>
  POST('application/json', typeof value === 'string' ? value : JSON.stringify(value), length);
/** Adds header lines to the head of a request. */
export const withHeaders = (bytes, headers) => {
  const at = bytes.indexOf('\r\n') + 2;
  return Buffer.concat([bytes.subarray(0, at), Buffer.from(headers), bytes.subarray(at)]);
};
export const bomb = gzipSync(Buffer.alloc(20 << 20, ' '));

export const form = (size, { close = true, query = 'mutation ($f: Upload) { size(file: $f) }' } = {}) => {
  const part = (name, text, more = '') =>
    `--x\r\nContent-Disposition: form-data; name="${name}"${more}\r\n\r\n${text}\r\n`;
  const text =
    part('operations', JSON.stringify({ query, variables: { f: null } })) +
    part('map', '{"0":["variables.f"]}') +
    part('0', 'z'.repeat(size), '; filename="a.bin"');
  return close ? `${text}--x--\r\n` : text.slice(0, -2);
};
