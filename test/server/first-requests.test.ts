import { execFile } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { makeFolder } from '../kit.ts';

const run = promisify(execFile);
const directory = makeFolder();

it('first requests without a free descriptor do not make later ones fail', async () => {
  writeFileSync(join(directory, 'small.txt'), 'small');
  writeFileSync(join(directory, 'large.bin'), Buffer.alloc(3 << 20));
  const script = `ulimit -n 60; exec "${process.execPath}" "${join(__dirname, 'first-requests.mjs')}" "${directory}"`;
  const { stdout } = await run('bash', ['-c', script]);
  const [exhausted, later] = JSON.parse(stdout);
  // What needs no file of the system works; files cannot be opened.
  expect(exhausted).toEqual({ small: 503, streamed: 503, upload: 200, page: 200 });
  expect(later).toEqual({ small: 200, streamed: 200, upload: 200, page: 200 });
});
