/** @tags node-lines */
import { execFile } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { makeFolder } from '../kit.ts';

const run = promisify(execFile);
const directory = makeFolder();

it.each(['index.mjs', 'index.cjs'])(
  'first requests and sockets without a free descriptor do not make later ones fail (%s)',
  async (entry) => {
    writeFileSync(join(directory, 'small.txt'), 'small');
    writeFileSync(join(directory, 'large.bin'), Buffer.alloc(3 << 20));
    const main = join(__dirname, 'first-requests.mjs');
    const built = join(__dirname, '../../dist', entry);
    const script = `ulimit -n 60; exec "${process.execPath}" "${main}" "${directory}" "${built}"`;
    const { stdout } = await run('bash', ['-c', script]);
    const [exhausted, later] = JSON.parse(stdout);
    const working = { upload: 200, page: 200, query: 200, mutation: 200, socket: 'acknowledged' };
    // What needs no file of the system works; files cannot be opened.
    expect(exhausted).toEqual({ ...working, small: 503, streamed: 503, script: 503 });
    expect(later).toEqual({ ...working, small: 200, streamed: 200, script: 200 });
  },
);
