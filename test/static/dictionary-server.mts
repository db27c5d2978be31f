// Serves two versions of a bundle in turn, with the Node that runs it. Prints its port, and the header of each request.
import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { staticFiles } from '../../middleware/static.ts';

const [folder, protocol] = process.argv.slice(2) as [string, string];
const tls = join(import.meta.dirname, '../fixtures/tls');

function bundle(version: number): string {
  const lines = Array.from(
    { length: 20_000 },
    (_, line) => `export const v${line} = ${Math.imul(line, 2_654_435_761)};`,
  );
  lines[700] = `globalThis.version = ${version};`;
  return lines.join('\n');
}

/** Replaces the page by that of a version, whose bundle it adds. */
function deploy(version: number): void {
  const name = `app-${String(version).repeat(8)}.js`;
  writeFileSync(join(folder, 'assets', name), bundle(version));
  writeFileSync(
    join(folder, 'next.html'),
    `<!doctype html><script type="module" src="/assets/${name}"></script>`,
  );
  renameSync(join(folder, 'next.html'), join(folder, 'index.html'));
}

mkdirSync(join(folder, 'assets'));
deploy(1);
const options = { html: true, immutable: /^\/assets\//, compress: { dictionaries: true, cpuShare: 1 } };
const serve = staticFiles(folder, options);
const handle: Parameters<typeof createServer>[1] = (req, res) => {
  if (req.url === '/deploy') {
    deploy(2);
    res.end('deployed');
  } else serve(req, res, () => res.writeHead(404).end());
};
const server =
  protocol === 'https'
    ? createTlsServer(
        { key: readFileSync(join(tls, 'key.pem')), cert: readFileSync(join(tls, 'cert.pem')) },
        handle,
      )
    : createServer(handle);
server.listen(0, '127.0.0.1', () => process.stdout.write(String((server.address() as AddressInfo).port)));
