// A server for a child process: `node --import tsx child.ts <tempDir>`. The server can report its memory or exit.
import { readdirSync, readlinkSync } from 'node:fs';
import * as http from 'node:http';
import type { AddressInfo } from 'node:net';
import { graphqlHTTP } from 'espalier';
import { createSchema } from './schema.ts';

const handle = graphqlHTTP(createSchema([]), {
  uploads: { tempDir: process.argv[2] as string, maxFileSize: 2 ** 31, maxRequestSize: 2 ** 31 },
});
const server = http.createServer((req, res) => {
  if (req.url !== '/status') {
    handle(req, res);
    return;
  }
  const links = readdirSync('/proc/self/fd').length;
  res.end(JSON.stringify({ rss: process.memoryUsage.rss(), fds: links, deleted: countDeleted() }));
});
server.listen(0, '127.0.0.1', () => process.send?.((server.address() as AddressInfo).port));

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
