import { createHash } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { promisify } from 'node:util';
import { brotliDecompress, gzip } from 'node:zlib';
import { checkPreconditions } from '../http/conditions/preconditions.ts';
import { parseAcceptEncoding } from '../http/negotiation/accept-encoding.ts';
import { type Reply, writeReply } from '../http/reply/write-reply.ts';
import type { PageFiles } from './page.ts';

/** The files of GraphiQL. */
interface GraphiQLAssets {
  /** The files that the page loads first. */
  readonly page: PageFiles;
  /** Responds to a GET or HEAD request for a file; with 404 if the name is undefined or unknown. */
  send(req: IncomingMessage, res: ServerResponse, name: string | undefined): Promise<void>;
}

type BuiltFile = typeof import('#graphiql')['files'][string];
type Coding = 'br' | 'gzip' | 'identity';

const CODINGS: readonly Coding[] = ['br', 'gzip', 'identity'];

/** Loads the list of built files. `scope` determines whether shared caches may store them. */
export async function loadAssets(scope: 'public' | 'private'): Promise<GraphiQLAssets> {
  const { page, files } = await importFiles();
  const assets = new Map(Object.entries(files).map(([name, file]) => [name, new Asset(file, scope)]));
  return {
    page,
    async send(req, res, name) {
      const asset = name === undefined ? undefined : assets.get(name);
      writeReply(req, res, asset === undefined ? NOT_FOUND : await asset.reply(req));
    },
  };
}

async function importFiles() {
  try {
    return await import('#graphiql');
  } catch (cause) {
    throw new Error(
      'The files of GraphiQL are missing. In a clone of the repository, run `npm run build` first',
      { cause },
    );
  }
}

// This policy applies to workers and to files that are opened directly.
const POLICY = "default-src 'none'; script-src 'self'; connect-src 'self'; frame-ancestors 'none'";

interface EncodedBody {
  readonly body: Buffer;
  readonly etag: string;
}

/** A file of the page: brotli as built; gzip and identity are made for the first client that needs them. */
class Asset {
  readonly #file: BuiltFile;
  readonly #headers: Record<string, string>;
  readonly #bodies = new Map<Coding, Promise<EncodedBody>>();

  constructor(file: BuiltFile, scope: 'public' | 'private') {
    this.#file = file;
    this.#headers = {
      'content-type': file.type,
      'content-security-policy': POLICY,
      'cross-origin-resource-policy': 'same-origin',
      'cache-control': `${scope}, max-age=31536000, immutable`,
      vary: 'Accept-Encoding',
      'x-content-type-options': 'nosniff',
    };
  }

  async reply({ headers: request }: IncomingMessage): Promise<Reply> {
    const coding = bestCoding(request['accept-encoding']);
    if (coding === undefined) return NOT_ACCEPTABLE;
    const { body, etag } = await this.#encoded(coding);
    const headers = { ...this.#headers, etag };
    const result = checkPreconditions(request, { tag: etag, modified: undefined });
    if (result === 'not-modified') return { status: 304, headers, body: undefined };
    if (result === 'failed') return PRECONDITION_FAILED;
    return {
      status: 200,
      headers: coding === 'identity' ? headers : { ...headers, 'content-encoding': coding },
      body,
    };
  }

  #encoded(coding: Coding): Promise<EncodedBody> {
    let encoded = this.#bodies.get(coding);
    if (encoded === undefined) {
      encoded = this.#encode(coding);
      this.#bodies.set(coding, encoded);
      // The next request tries again.
      encoded.catch(() => this.#bodies.delete(coding));
    }
    return encoded;
  }

  async #encode(coding: Coding): Promise<EncodedBody> {
    const body = await recode(Buffer.from(this.#file.load(), 'base64'), coding);
    const etag = `"${createHash('sha1').update(body).digest('base64url')}"`;
    return { body, etag };
  }
}

function bestCoding(header: string | undefined): Coding | undefined {
  const weightOf = parseAcceptEncoding(header);
  let best: Coding | undefined;
  for (const coding of CODINGS) {
    if (weightOf(coding) > (best === undefined ? 0 : weightOf(best))) best = coding;
  }
  return best;
}

const decompressBrotli = promisify(brotliDecompress);
const compressGzip = promisify(gzip);

async function recode(brotli: Buffer, coding: Coding): Promise<Buffer> {
  if (coding === 'br') return brotli;
  const plain = await decompressBrotli(brotli);
  return coding === 'gzip' ? compressGzip(plain) : plain;
}

const TEXT = {
  'content-type': 'text/plain; charset=utf-8',
  'cache-control': 'no-store',
  'x-content-type-options': 'nosniff',
};
const NOT_FOUND: Reply = { status: 404, headers: TEXT, body: 'Not Found' };
const PRECONDITION_FAILED: Reply = { status: 412, headers: TEXT, body: 'Precondition Failed' };
const NOT_ACCEPTABLE: Reply = {
  status: 406,
  headers: { ...TEXT, vary: 'Accept-Encoding' },
  body: 'Not Acceptable',
};
