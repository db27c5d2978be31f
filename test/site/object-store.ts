import { createHash, createHmac } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { buffer } from 'node:stream/consumers';
import { listen } from '../kit.ts';

const SECRET = 'secret';

/** The environment that leads the AWS SDK to the store. */
export const credentials: Record<string, string> = {
  AWS_ACCESS_KEY_ID: 'key',
  AWS_SECRET_ACCESS_KEY: SECRET,
  AWS_REGION: 'eu-central-1',
};

export interface ObjectStore {
  readonly url: string;
  readonly objects: Map<string, { body: Buffer; type: string | undefined }>;
  /** Multipart uploads that are neither complete nor aborted. */
  readonly open: Map<string, Map<number, Buffer>>;
  readonly aborted: string[];
}

/** A server for the part of the S3 API that the AWS SDK uses for uploads. It checks signatures in URLs. */
export async function startObjectStore(): Promise<ObjectStore> {
  const store: Store = { objects: new Map(), open: new Map(), aborted: [] };
  const { url } = await listen((req, res) => {
    respond(store, req, res).catch((error) => res.destroy(error));
  });
  return { ...store, url };
}

type Store = Omit<ObjectStore, 'url'>;

async function respond(store: Store, req: IncomingMessage, res: ServerResponse): Promise<void> {
  const url = new URL(req.url as string, `http://${req.headers.host}`);
  const key = url.pathname;
  const upload = url.searchParams.get('uploadId');
  const body = await buffer(req);
  if (
    url.searchParams.has('X-Amz-Signature') &&
    signatureOf(req, url) !== url.searchParams.get('X-Amz-Signature')
  ) {
    res.writeHead(403).end('SignatureDoesNotMatch');
  } else if (url.searchParams.has('uploads')) {
    store.open.set(key, new Map());
    xml(
      res,
      `<InitiateMultipartUploadResult><UploadId>1</UploadId><Key>${key}</Key></InitiateMultipartUploadResult>`,
    );
  } else if (upload !== null && req.method === 'PUT') {
    store.open.get(key)?.set(Number(url.searchParams.get('partNumber')), body);
    res.setHeader('ETag', '"part"').end();
  } else if (upload !== null && req.method === 'DELETE') {
    store.open.delete(key);
    store.aborted.push(key);
    res.writeHead(204).end();
  } else if (upload !== null) {
    const parts = [...(store.open.get(key) ?? [])].sort(([a], [b]) => a - b).map(([, part]) => part);
    store.open.delete(key);
    store.objects.set(key, { body: Buffer.concat(parts), type: undefined });
    xml(
      res,
      `<CompleteMultipartUploadResult><Key>${key}</Key><ETag>"all"</ETag></CompleteMultipartUploadResult>`,
    );
  } else {
    store.objects.set(key, { body, type: req.headers['content-type'] });
    res.setHeader('ETag', '"all"').end();
  }
}

function xml(res: ServerResponse, text: string): void {
  res.setHeader('Content-Type', 'application/xml').end(`<?xml version="1.0" encoding="UTF-8"?>${text}`);
}

/** The signature of a signed URL (AWS Signature Version 4, query parameters). */
function signatureOf(req: IncomingMessage, url: URL): string {
  const query = [...url.searchParams]
    .filter(([name]) => name !== 'X-Amz-Signature')
    .sort(([a], [b]) => (a < b ? -1 : 1));
  const names = (url.searchParams.get('X-Amz-SignedHeaders') ?? '').split(';');
  const canonical = [
    req.method,
    url.pathname,
    query.map(([name, value]) => `${encodeURIComponent(name)}=${encodeURIComponent(value)}`).join('&'),
    ...names.map((name) => `${name}:${req.headers[name]}`),
    '',
    names.join(';'),
    url.searchParams.get('X-Amz-Content-Sha256') ?? 'UNSIGNED-PAYLOAD',
  ].join('\n');
  const scope = (url.searchParams.get('X-Amz-Credential') ?? '').split('/').slice(1);
  const hash = createHash('sha256').update(canonical).digest('hex');
  const text = ['AWS4-HMAC-SHA256', url.searchParams.get('X-Amz-Date'), scope.join('/'), hash].join('\n');
  const hmac = (secret: string | Buffer, value: string): Buffer =>
    createHmac('sha256', secret).update(value).digest();
  return hmac(scope.reduce<string | Buffer>(hmac, `AWS4${SECRET}`), text).toString('hex');
}
