import * as http from 'node:http';

export const BOUNDARY = 'espalier-test';

/** A part of a form, as it is on the wire. */
export interface Part {
  name?: string;
  filename?: string;
  type?: string;
  /** Replaces the whole header. */
  head?: string;
  body: string | Buffer;
}

/** A multipart body from the given parts, without checks, so that tests can build malformed bodies. */
export function encode(parts: readonly Part[], closing = `--${BOUNDARY}--\r\n`): Buffer {
  const chunks: Buffer[] = [];
  for (const part of parts) {
    chunks.push(
      Buffer.from(`--${BOUNDARY}\r\n${headOf(part)}\r\n\r\n`),
      Buffer.from(part.body),
      Buffer.from('\r\n'),
    );
  }
  return Buffer.concat([...chunks, Buffer.from(closing)]);
}

function headOf({ name, filename, type, head }: Part): string {
  if (head !== undefined) return head;
  let line = 'Content-Disposition: form-data';
  if (name !== undefined) line += `; name="${name}"`;
  if (filename !== undefined) line += `; filename="${filename}"`;
  return type === undefined ? line : `${line}\r\nContent-Type: ${type}`;
}

export const operations = (value: unknown): Part => ({
  name: 'operations',
  body: typeof value === 'string' ? value : JSON.stringify(value),
});
export const map = (value: unknown): Part => ({
  name: 'map',
  body: typeof value === 'string' ? value : JSON.stringify(value),
});
export const file = (
  name: string,
  body: string | Buffer = `content of ${name}`,
  filename = `${name}.txt`,
): Part => ({
  name,
  filename,
  type: 'text/plain',
  body,
});

/** A response with its parsed body. */
interface FormResponse {
  status: number;
  headers: http.IncomingHttpHeaders;
  // biome-ignore lint/suspicious/noExplicitAny: tests read responses of many shapes
  json: any;
}

/** Posts a form (or bytes) and returns the response. */
export function post(
  url: string,
  body: Buffer | readonly Part[],
  headers: http.OutgoingHttpHeaders = {},
  method = 'POST',
  agent?: http.Agent,
): Promise<FormResponse> {
  const bytes = Buffer.isBuffer(body) ? body : encode(body);
  return new Promise((resolve, reject) => {
    const req = http.request(url, {
      method,
      agent,
      headers: {
        'content-type': `multipart/form-data; boundary=${BOUNDARY}`,
        'content-length': bytes.length,
        ...headers,
      },
    });
    req.on('error', reject);
    req.on('response', (res) => {
      const chunks: Buffer[] = [];
      res.on('data', (chunk) => chunks.push(chunk));
      res.on('error', reject);
      res.on('end', () => {
        const text = Buffer.concat(chunks).toString();
        resolve({
          status: res.statusCode as number,
          headers: res.headers,
          json: text === '' ? undefined : JSON.parse(text),
        });
      });
    });
    req.end(bytes);
  });
}
