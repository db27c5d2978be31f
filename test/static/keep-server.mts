// Serves argv[2] with copies in argv[3], and prints the port.
import { createServer } from 'node:http';
import { flushCompileCache } from 'node:module';
import type { AddressInfo } from 'node:net';
import { staticFiles } from '../../middleware/static.ts';

const [, , root = '', directory = ''] = process.argv;
// Before the process is killed.
flushCompileCache();
const files = staticFiles(root, { html: true, immutable: /^\/assets\//, keep: { directory } });
const server = createServer((req, res) => files(req, res, () => void res.end())).listen(
  0,
  '127.0.0.1',
  () => {
    console.log((server.address() as AddressInfo).port);
  },
);
