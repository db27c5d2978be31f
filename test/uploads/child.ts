// A server for a child process: `node --import tsx child.ts <tempDir>`. The server can report its memory, and
// handles requests to /exhausted without a free descriptor, and plain forms to /form.
import { closeSync, openSync, readdirSync, readlinkSync } from 'node:fs';
import * as http from 'node:http';
import type { AddressInfo } from 'node:net';
import { graphqlHTTP } from 'espalier';
import { receiveFiles } from 'espalier/uploads';
import { createSchema } from './schema.ts';

const uploads = { tempDir: process.argv[2] as string, maxFileBytes: 2 ** 31, maxRequestBytes: 2 ** 31 };
const handle = graphqlHTTP(createSchema([]), { uploads });
const receive = receiveFiles(uploads);
const server = http.createServer((req, res) => {
  if (req.url === '/status') {
    res.end(JSON.stringify({ rss: process.memoryUsage.rss(), deleted: countDeleted() }));
    return;
  }
  if (req.url === '/form') {
    receive(req, res, () => res.end(JSON.stringify(receive.form(req).files['0']?.length)));
    return;
  }
  if (req.url === '/exhausted') {
    const descriptors = openAll();
    res.on('close', () => descriptors.forEach(closeSync));
  }
  handle(req, res);
});
server.listen(0, '127.0.0.1', () => process.send?.((server.address() as AddressInfo).port));

/** Opens files until no descriptor is left. */
function openAll(): number[] {
  const descriptors: number[] = [];
  try {
    for (;;) descriptors.push(openSync('/dev/null', 'r'));
  } catch {
    return descriptors;
  }
}

/** Descriptors of files that have been unlinked. */
function countDeleted(): number {
  return readdirSync('/proc/self/fd').filter((fd) => nameOf(fd).includes('(deleted)')).length;
}

function nameOf(fd: string): string {
  try {
    return readlinkSync(`/proc/self/fd/${fd}`);
  } catch {
    return '';
  }
}
