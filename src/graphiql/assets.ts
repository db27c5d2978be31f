import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { brotliDecompress, gzip } from 'node:zlib';
import type { Reply } from '../http/reply.ts';
import type { PageFiles } from './page.ts';

const decode = promisify(brotliDecompress);
const encode = promisify(gzip);

/** dist/graphiql/manifest.json, as the build writes it. */
interface Manifest extends PageFiles {
  /** Media type by the name of a file; only names in here are served. */
  readonly files: Readonly<Record<string, string>>;
}

/** The IDE's files: the names a page begins with, and an answer for each. */
export interface Assets {
  readonly page: PageFiles;
  /** Undefined when there is no such file. */
  reply(name: string, acceptEncoding: string, ifNoneMatch: string | undefined): Promise<Reply | undefined>;
}

/** Finds the built files. They are read when they are asked for, and kept: 1.4 MB when all of them were. */
export async function loadAssets(): Promise<Assets> {
  const folder = await findFolder();
  const manifest = JSON.parse(await readFile(join(folder, 'manifest.json'), 'utf8')) as Manifest;
  const bodies = new Map<string, Promise<Buffer>>();

  function body(name: string, coding: Coding): Promise<Buffer> {
    const key = `${name} ${coding}`;
    let found = bodies.get(key);
    if (found === undefined) {
      found = make(name, coding);
      bodies.set(key, found);
      found.catch(() => bodies.delete(key));
    }
    return found;
  }

  async function make(name: string, coding: Coding): Promise<Buffer> {
    if (coding === 'br') return readFile(join(folder, `${name}.br`));
    if (coding === 'gzip') return encode(await body(name, 'identity'), { level: 6 });
    return decode(await body(name, 'br'));
  }

  return {
    page: manifest,
    async reply(name, acceptEncoding, ifNoneMatch) {
      const type = Object.hasOwn(manifest.files, name) ? manifest.files[name] : undefined;
      if (type === undefined) return undefined;
      const coding = pickCoding(acceptEncoding);
      const etag = `"${name}-${coding}"`;
      const headers = { ...COMMON, 'content-type': type, etag };
      if (ifNoneMatch?.includes(etag)) return { status: 304, headers, body: undefined };
      const encoded = coding === 'identity' ? headers : { ...headers, 'content-encoding': coding };
      return { status: 200, headers: encoded, body: await body(name, coding) };
    },
  };
}

const COMMON = {
  'content-security-policy':
    "default-src 'none'; script-src 'self'; connect-src 'self'; frame-ancestors 'none'",
  'cross-origin-resource-policy': 'same-origin',
  vary: 'Accept-Encoding',
  'x-content-type-options': 'nosniff',
};

type Coding = 'br' | 'gzip' | 'identity';

/** Browsers offer brotli only in secure contexts, so the others are for plain http on a network. */
function pickCoding(acceptEncoding: string): Coding {
  const accepted = (coding: string): boolean => {
    const quality = new RegExp(`(?:^|,)\\s*${coding}\\s*(?:;\\s*q=([0-9.]+))?\\s*(?:,|$)`, 'i').exec(
      acceptEncoding,
    );
    return quality !== null && Number(quality[1] ?? 1) > 0;
  };
  return accepted('br') ? 'br' : accepted('gzip') ? 'gzip' : 'identity';
}

async function findFolder(): Promise<string> {
  try {
    return (await import('#graphiql')).folder;
  } catch (cause) {
    throw new Error('GraphiQL was not built: in a checkout, run `npm run build` first', { cause });
  }
}
