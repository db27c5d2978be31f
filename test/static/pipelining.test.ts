/** @tags node-lines */
import { writeFileSync } from 'node:fs';
import { createServer, type ServerResponse } from 'node:http';
import net from 'node:net';
import { join } from 'node:path';
import { staticFiles } from '../../middleware/static.ts';
import { descriptorsIn } from '../descriptors.ts';
import { listen, makeFolder } from '../kit.ts';
import { until } from '../until.ts';

const folder = makeFolder();

it('staticFiles opens the file of a pipelined request after the earlier response, and closes it when the client disconnects', async () => {
  const file = join(folder, 'big.bin');
  writeFileSync(file, Buffer.alloc(20 << 20));
  const files = staticFiles(folder);
  const slow: ServerResponse[] = [];
  const server = createServer((req, res) => {
    if (req.url === '/slow') slow.push(res);
    else files(req, res, () => res.end());
  });
  const { port } = await listen(server);
  // The ETag of a large file is computed in the background, for which the file is opened.
  const hasEtag = async (): Promise<boolean> =>
    (await fetch(`http://127.0.0.1:${port}/big.bin`, { method: 'HEAD' })).headers.has('etag');
  while (!(await hasEtag())) await new Promise((resolve) => setTimeout(resolve, 5));
  await until(() => descriptorsIn(file) === 0);
  const socket = net.connect(port, '127.0.0.1');
  socket.pause();
  socket.write('GET /slow HTTP/1.1\r\nHost: a\r\n\r\n');
  socket.write('GET /big.bin HTTP/1.1\r\nHost: a\r\n\r\n'.repeat(50));
  await until(() => slow.length === 1);
  const counts = new Set<number>();
  for (let turn = 0; turn < 50; turn++) {
    await new Promise((resolve) => setTimeout(resolve, 1));
    counts.add(descriptorsIn(file));
  }
  expect([...counts]).toEqual([0]);
  slow[0]?.end();
  await until(() => descriptorsIn(file) === 1);
  socket.destroy();
  await until(() => descriptorsIn(file) === 0);
});
