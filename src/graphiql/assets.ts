import { readFile } from 'node:fs/promises';
import type { ServerResponse } from 'node:http';
import { join } from 'node:path';
import { createBrotliAssets } from '../static/brotli-assets.ts';
import type { StaticHandler } from '../static/handler.ts';
import type { PageFiles } from './page.ts';

/** The IDE's files. */
export interface IdeFiles {
  /** What a page begins with. */
  readonly page: PageFiles;
  /** Serves them: brotli as it lies on disk, or decoded once for clients without it. */
  readonly site: StaticHandler;
}

/** Finds the built files; `scope` says whether a shared cache may keep them. */
export async function loadFiles(scope: 'public' | 'private'): Promise<IdeFiles> {
  const folder = await findFolder();
  const page = JSON.parse(await readFile(join(folder, 'manifest.json'), 'utf8')) as PageFiles;
  const setHeaders = (res: ServerResponse): void => {
    // For a worker this is the policy in force, and for a file that is opened by itself.
    res.setHeader('Content-Security-Policy', POLICY);
    res.setHeader('Cross-Origin-Resource-Policy', 'same-origin');
    res.setHeader('Cache-Control', `${scope}, max-age=31536000, immutable`);
  };
  return { page, site: createBrotliAssets(folder, { fallthrough: false, setHeaders }) };
}

const POLICY = "default-src 'none'; script-src 'self'; connect-src 'self'; frame-ancestors 'none'";

async function findFolder(): Promise<string> {
  try {
    return (await import('#graphiql')).folder;
  } catch (cause) {
    throw new Error('GraphiQL was not built: in a checkout, run `npm run build` first', { cause });
  }
}
