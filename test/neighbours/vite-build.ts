import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { put } from '../static/fixture.ts';

const PAGE = `<!doctype html>
<html><head><meta charset="utf-8"><title>start</title>
<script>document.documentElement.dataset.inline = 'ran';</script>
<style>body { background: rgb(1, 2, 3) }</style>
</head><body><button id="more">more</button><script type="module" src="/main.js"></script></body></html>
`;

/** Builds an application with a chunk that a click loads. The texts of two releases give their chunks other names. */
export function buildWithVite(folder: string, release: string): string {
  const source = join(folder, `src-${release}`);
  put(join(source, 'index.html'), PAGE);
  put(join(source, 'main.css'), `button { color: rgb(7, 8, 9); --release: "${release}" }`);
  put(
    join(source, 'main.js'),
    `import './main.css';
    import { shared } from './shared.js';
    document.title = 'main ${release} ' + shared;
    document.querySelector('#more').addEventListener('click', async () => {
      try {
        document.title = (await import('./more.js')).default;
      } catch (error) {
        document.title = 'failed: ' + error.message;
      }
    });`,
  );
  put(join(source, 'shared.js'), `export const shared = 'shared';`);
  put(
    join(source, 'more.js'),
    `import { shared } from './shared.js'; export default 'more ${release} ' + shared;`,
  );
  const out = join(folder, `dist-${release}`);
  const vite = join(__dirname, 'node_modules/vite/bin/vite.js');
  const args = [vite, 'build', source, '--outDir', out, '--logLevel', 'error'];
  const { status, stderr } = spawnSync(process.execPath, args, { encoding: 'utf8' });
  if (status !== 0) throw new Error(stderr);
  return out;
}
