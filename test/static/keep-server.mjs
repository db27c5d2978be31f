// Serves argv[2] with copies in argv[3], and prints the port. Uses the build: many processes begin one after the other.
import { createServer } from 'node:http';
import { staticFiles } from '../../dist/static.mjs';

const [, , root = '', directory = ''] = process.argv;
const files = staticFiles(root, { html: true, cacheControl: /^\/assets\//, keep: { directory } });
const server = createServer((req, res) => files(req, res, () => void res.end())).listen(
  0,
  '127.0.0.1',
  () => {
    console.log(server.address().port);
  },
);
