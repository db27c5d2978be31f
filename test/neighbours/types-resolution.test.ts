/** @tags once */
import { spawnSync } from 'node:child_process';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { pack, scratchFolder } from '../tarball.ts';

const folder = scratchFolder();
afterAll(() => rmSync(folder, { recursive: true }));

it('Are The Types Wrong finds no problem in the tarball, under node10, node16 and bundler resolution', () => {
  const { path } = pack();
  const attw = join(__dirname, 'node_modules/@arethetypeswrong/cli/dist/index.js');
  const { status, stdout } = spawnSync(process.execPath, [attw, path, '--no-color'], { encoding: 'utf8' });
  expect([status, stdout]).toEqual([0, expect.stringContaining('No problems found')]);
}, 60_000);
