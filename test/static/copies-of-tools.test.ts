/** @tags once slow */
import { execFileSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { brotliCompressSync, gzipSync } from 'node:zlib';
import { staticFiles } from '../../middleware/static.ts';
import { bare, get, listen, makeFolder } from './fixture.ts';

const NAMES = Array.from({ length: 40 }, (_, index) => `assets/${index}.js`);

/** A build: sources and copies are written in one go, so that their times differ by microseconds. */
function build(): string {
  const files: Record<string, string | Buffer> = {};
  for (const name of NAMES) {
    const content = `export const name = '${name}';\n`.repeat(50);
    files[`dist/${name}.br`] = brotliCompressSync(content);
    files[`dist/${name}`] = content;
    files[`dist/${name}.gz`] = gzipSync(content);
  }
  return makeFolder(files);
}

const shell = (command: string, cwd: string): void => void execFileSync('sh', ['-c', command], { cwd });
const GIT = 'git -c user.name=a -c user.email=a@example.com -c init.defaultBranch=main';

describe('precompressed copies after a deployment by a program', () => {
  it.each([
    ['tar', 'tar -cf - -C dist . | tar -xf - -C target'],
    ['tar without times', 'tar -cf - -C dist . | tar -xmf - -C target'],
    [
      'tar with one time for all files',
      "tar --mtime='1985-10-26 08:15:00' -cf - -C dist . | tar -xf - -C target",
    ],
    ['cp', 'cp -r dist/. target'],
    ['cp with times', 'cp -a dist/. target'],
    [
      'parallel copies',
      'find dist -type f | xargs -P 8 -I \'{}\' sh -c \'mkdir -p "$(dirname "target/{}")"; cp "{}" "target/{}"\'; mv target/dist/* target/',
    ],
    [
      'git',
      `${GIT} init -q . && ${GIT} add dist && ${GIT} commit -qm build && ${GIT} clone -q . clone && mv clone/dist/* target/`,
    ],
  ])('staticFiles uses all copies that %s has deployed', async (_name, command) => {
    const folder = build();
    mkdirSync(join(folder, 'target'));
    shell(command, folder);
    const port = await listen(bare(staticFiles(join(folder, 'target'), { precompressed: true })));
    const codings = new Map<string | undefined, number>();
    for (const name of NAMES) {
      for (const accepted of ['br', 'gzip']) {
        const coding = (await get(port, `/${name}`, { 'Accept-Encoding': accepted })).headers[
          'content-encoding'
        ];
        codings.set(coding, (codings.get(coding) ?? 0) + 1);
      }
    }
    expect([...codings]).toEqual([
      ['br', NAMES.length],
      ['gzip', NAMES.length],
    ]);
  });
});
