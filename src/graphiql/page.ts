import { createHash } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { promisify } from 'node:util';
import { brotliDecompress, gzip } from 'node:zlib';
import { packages } from '../diagnostics/packages.ts';
import { checkPreconditions } from '../http/conditions.ts';
import { parseAcceptEncoding } from '../http/negotiation.ts';
import { codeOf, isResourceError, NO_STORE, type Reply, writeReply } from '../http/reply.ts';
import type { GraphiQLSettings } from './options.ts';

/** The folder below the page from which its files are served. */
export const FILES = '__graphiql';

/** The names of the files that the page loads first, from the build's manifest. */
export interface PageFiles {
  /** The script that starts the page. */
  readonly entry: string;
  readonly styles: readonly string[];
  /** Scripts that the entry imports. The page lists them, so that they load in parallel with the entry. */
  readonly preload: readonly string[];
}

// The delayed hint appears only if the files of the page cannot be loaded; the running page replaces it.
const STYLE = `
html{color-scheme:light dark;background:#fff;color:#3b4b68}
@media (prefers-color-scheme:dark){html{background:#212a3b;color:#b7c2d7}}
body{margin:0;font:16px system-ui,sans-serif}
#graphiql{height:100vh}
.loading{padding:2rem;opacity:0;animation:appear 0s .4s forwards}
.late{animation-delay:10s;padding-top:0}
@keyframes appear{to{opacity:1}}`;

const FAVICON =
  "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 32 32'%3E%3Crect width='32' height='32' rx='7' " +
  "fill='%23d60590'/%3E%3Cg fill='none' stroke='%23fff' stroke-width='2.4' stroke-linecap='round'%3E%3Cpath d='M16 27V6M6 10h20M6 " +
  "18h20M16 18 8 10M16 18l8-8M16 26l-8-8M16 26l8-8'/%3E%3C/g%3E%3C/svg%3E";

/** Renders the parts that are equal for all requests once; a response only joins a few strings. */
export function pageRenderer(
  settings: GraphiQLSettings,
  files: PageFiles,
): (base: string, nonce: string) => string {
  const tags = (base: string): string =>
    [
      ...files.styles.map((name) => `<link rel="stylesheet" href="${base}${name}">`),
      ...files.preload.map((name) => `<link rel="modulepreload" href="${base}${name}">`),
      `<script type="module" src="${base}${files.entry}"></script>`,
    ].join('\n');
  return (base, nonce) => `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<meta property="csp-nonce" nonce="${nonce}">
<title>GraphiQL</title>
<link rel="icon" href="${FAVICON}">
<style nonce="${nonce}">${STYLE}</style>
<script type="application/json" id="graphiql-config">${settings.config}</script>
${tags(escapeHtml(base))}
</head>
<body>
<main id="graphiql">
<p class="loading" role="status">Loading GraphiQL\u2026</p>
<p class="loading late">This takes longer than expected. The files of this page are at <code>${escapeHtml(base)}</code>. Check
the browser's network panel for failed requests.</p>
</main>
<noscript><p>GraphiQL needs JavaScript.</p></noscript>
</body>
</html>
`;
}

/**
 * The folder of the page's files relative to the page, from the last segment of its path. An absolute path
 * would be wrong behind a proxy that strips a prefix, and `//host/...` would point to another site.
 */
export function filesBase(path: string): string {
  const segment = path.slice(path.lastIndexOf('/') + 1).replace(/\p{Surrogate}/gu, '');
  // Browsers encode these characters, but other clients may not, and they would be unsafe in the page.
  const safe = segment.replace(/[^!-~]|[\\"<>^`{|}]/gu, encodeURIComponent);
  return safe === '' ? `./${FILES}/` : `./${safe}/${FILES}/`;
}

const ENTITIES: Record<string, string> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

/** Escapes text for use between tags or in a quoted attribute. */
export function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (character) => ENTITIES[character] as string);
}

/**
 * Formats a value as JSON for a script element. The HTML parser ends the element at `</script` and changes
 * its mode at `<!--`, even inside JSON strings, so every angle bracket is escaped.
 */
export function jsonForScript(value: unknown): string {
  return JSON.stringify(value).replace(
    /[<>&\u2028\u2029]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

interface GraphiQLAssets {
  /** The files that the page loads first. */
  readonly page: PageFiles;
  /** Responds to a GET or HEAD request for a file; with 404 if the name is undefined or unknown. */
  send(req: IncomingMessage, res: ServerResponse, name: string | undefined): Promise<void>;
}

type BuiltFile = typeof import('#graphiql')['files'][string];
type Coding = 'br' | 'gzip' | 'identity';

const CODINGS: readonly Coding[] = ['br', 'gzip', 'identity'];

/**
 * Loads the list of built files. `scope` determines whether shared caches may store them. The function that it returns
 * throws in a clone of the repository without the files.
 */
export function loadAssets(scope: 'public' | 'private'): () => GraphiQLAssets {
  let built: ReturnType<typeof packages.graphiql>;
  try {
    built = packages.graphiql();
  } catch (cause) {
    if (codeOf(cause) !== 'MODULE_NOT_FOUND') throw cause;
    const message =
      'The files of GraphiQL are missing. In a clone of the repository, run `npm run build` first';
    return () => {
      throw new Error(message, { cause });
    };
  }
  const { page, files } = built;
  const assets = new Map(Object.entries(files).map(([name, file]) => [name, new Asset(file, scope)]));
  const all: GraphiQLAssets = {
    page,
    async send(req, res, name) {
      const asset = name === undefined ? undefined : assets.get(name);
      writeReply(req, res, asset === undefined ? NOT_FOUND : await asset.reply(req));
    },
  };
  return () => all;
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
    const encoded = await this.#encoded(coding).catch((error: unknown) => {
      // A file is read when it is requested first, for which the process may have no free descriptor. Node 26 then names
      // the package.json that it reads before.
      if (!isResourceError(error) && codeOf(error) !== 'ERR_INVALID_PACKAGE_CONFIG') throw error;
      return undefined;
    });
    if (encoded === undefined) return UNAVAILABLE;
    const { body, etag } = encoded;
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

const TEXT = { ...NO_STORE, 'content-type': 'text/plain; charset=utf-8' };
const UNAVAILABLE: Reply = {
  status: 503,
  headers: { ...TEXT, 'retry-after': '5' },
  body: 'Service Unavailable',
};
const NOT_FOUND: Reply = { status: 404, headers: TEXT, body: 'Not Found' };
const PRECONDITION_FAILED: Reply = { status: 412, headers: TEXT, body: 'Precondition Failed' };
const NOT_ACCEPTABLE: Reply = {
  status: 406,
  headers: { ...TEXT, vary: 'Accept-Encoding' },
  body: 'Not Acceptable',
};
