import { readFile } from 'node:fs/promises';
import type { ServerResponse } from 'node:http';
import { join } from 'node:path';
import { createBrotliAssets } from '../static/brotli-assets.ts';
import type { StaticHandler } from '../static/handler.ts';
import type { PageFiles } from './page.ts';

/** The files of GraphiQL. */
export interface GraphiQLFiles {
  /** The files that the page loads first. */
  readonly page: PageFiles;
  /** Serves the files: brotli as stored on disk, or decoded once for clients without it. */
  readonly handle: StaticHandler;
}

/** Finds the built files. `scope` determines whether shared caches may store them. */
export async function loadFiles(scope: 'public' | 'private'): Promise<GraphiQLFiles> {
  const folder = await findFolder();
  const page = JSON.parse(await readFile(join(folder, 'manifest.json'), 'utf8')) as PageFiles;
  const setHeaders = (res: ServerResponse): void => {
    // This policy applies to workers and to files that are opened directly.
    res.setHeader('Content-Security-Policy', POLICY);
    res.setHeader('Cross-Origin-Resource-Policy', 'same-origin');
    res.setHeader('Cache-Control', `${scope}, max-age=31536000, immutable`);
  };
  return { page, handle: createBrotliAssets(folder, { fallthrough: false, setHeaders }) };
}

const POLICY = "default-src 'none'; script-src 'self'; connect-src 'self'; frame-ancestors 'none'";

async function findFolder(): Promise<string> {
  try {
    return (await import('#graphiql')).folder;
  } catch (cause) {
    throw new Error(
      'The files of GraphiQL are missing. In a clone of the repository, run `npm run build` first',
      { cause },
    );
  }
}
