import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { request as httpRequest } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { Agent, cacheStores, type Dispatcher, interceptors, request as undiciRequest } from 'undici';
import { freePort, isAvailable, startProgram } from '../programs.ts';
import { snippets } from '../snippets.ts';

/** A cache between clients and a server. */
export interface SharedCache {
  send(path: string, headers?: Record<string, string>): Promise<CachedResponse>;
  close(): Promise<void>;
}

interface CachedResponse {
  readonly status: number;
  readonly headers: Record<string, unknown>;
  readonly body: string;
}

/** The caches of this machine. npm test says which ones are missing. */
export const sharedCaches = [
  { name: 'nginx', start: startNginx, isAvailable: isAvailable('nginx') },
  { name: 'Varnish', start: startVarnish, isAvailable: isAvailable('varnishd') },
  { name: 'undici', start: startUndici, isAvailable: true },
].filter((cache) => cache.isAvailable);

function startNginx(upstream: number): Promise<SharedCache> {
  return startProxy('nginx', (folder, port) => {
    const paths = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
      (name) => `${name}_temp_path ${join(folder, name)};`,
    );
    writeFileSync(
      join(folder, 'nginx.conf'),
      // As root, nginx would run as a user without access to the folder.
      `user root; daemon off; pid ${join(folder, 'pid')}; error_log stderr; events {}
      http {
        access_log off; ${paths.join(' ')}
        ${fromDocumentation(folder, port, upstream)}
      }`,
    );
    return ['-p', folder, '-c', join(folder, 'nginx.conf')];
  });
}

/** The configuration of docs/caching.md with the folder and the ports of this test. */
function fromDocumentation(folder: string, port: number, upstream: number): string {
  const block = snippets('nginx').find(({ page }) => page === 'docs/caching.md');
  if (block === undefined) throw new Error('docs/caching.md has no configuration of nginx');
  return block.code
    .replace('/var/cache/nginx/graphql', join(folder, 'cache'))
    .replace('listen 80;', `listen 127.0.0.1:${port};`)
    .replace(':3000', `:${upstream}`);
}

function startVarnish(upstream: number): Promise<SharedCache> {
  return startProxy('varnishd', (folder, port) => {
    // Varnish does not cache requests with a cookie or credentials by default. This one relies on the response alone.
    writeFileSync(
      join(folder, 'default.vcl'),
      `vcl 4.1;
      backend default { .host = "127.0.0.1"; .port = "${upstream}"; }
      sub vcl_recv { if (req.method == "GET" || req.method == "HEAD") { return (hash); } }`,
    );
    const address = `127.0.0.1:${port}`;
    return [
      '-F',
      '-j',
      'none',
      '-f',
      join(folder, 'default.vcl'),
      '-a',
      address,
      '-n',
      join(folder, 'work'),
      '-s',
      'malloc,16m',
    ];
  });
}

async function startUndici(upstream: number): Promise<SharedCache> {
  const store = new cacheStores.MemoryCacheStore();
  const agent = new Agent();
  const dispatcher: Dispatcher = agent.compose(interceptors.cache({ store, type: 'shared' }));
  return {
    async send(path, headers = {}) {
      const {
        statusCode,
        headers: received,
        body,
      } = await undiciRequest(`http://127.0.0.1:${upstream}${path}`, {
        dispatcher,
        headers,
      });
      return { status: statusCode, headers: received, body: await body.text() };
    },
    close: () => agent.close(),
  };
}

/** Starts a program that `configure` has written the files for; it returns the arguments. */
async function startProxy(
  program: string,
  configure: (folder: string, port: number) => string[],
): Promise<SharedCache> {
  const folder = mkdtempSync(join(tmpdir(), 'espalier-caches-'));
  const port = await freePort();
  mkdirSync(join(folder, 'logs'));
  const stop = await startProgram(program, configure(folder, port), { port });
  return {
    async send(path, headers = {}) {
      const sent = httpRequest({
        port,
        host: '127.0.0.1',
        path,
        headers: { host: 'api.test', ...headers },
      }).end();
      const [response] = await once(sent, 'response');
      return { status: response.statusCode, headers: response.headers, body: await text(response) };
    },
    async close() {
      await stop();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
