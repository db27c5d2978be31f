// Started by resources.test.ts with few descriptors or without permissions. Prints its port.
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { staticFiles } from '../../middleware/static.ts';

const serve = staticFiles(process.argv[2] as string, {
  fallthrough: false,
  precompressed: true,
  symlinks: process.argv[3] === 'follow' ? 'follow' : 'inside',
  cache: { maxBytes: '1mb' },
});
const server = createServer((req, res) =>
  serve(req, res, (error) => {
    res.statusCode = Object(error).status ?? 500;
    res.end(String(error));
  }),
);
server.listen(0, '127.0.0.1', () => process.stdout.write(`${(server.address() as AddressInfo).port}\n`));
