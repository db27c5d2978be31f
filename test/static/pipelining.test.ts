import { once } from 'node:events';
import { mkdtempSync, readdirSync, readlinkSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import net, { type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { staticFiles } from '../../middleware/static.ts';
import { until } from '../until.ts';

const folder = mkdtempSync(join(tmpdir(), 'espalier-pipelining-'));
afterAll(() => rmSync(folder, { recursive: true }));

/** Descriptors of this process that are open on the file. */
function open(file: string): number {
  return readdirSync('/proc/self/fd').filter((fd) => {
    try {
      return readlinkSync(`/proc/self/fd/${fd}`) === file;
    } catch {
      return false;
    }
  }).length;
}

it('staticFiles closes the files of pipelined requests whose client has disconnected', async () => {
  const file = join(folder, 'big.bin');
  writeFileSync(file, Buffer.alloc(1 << 20));
  const files = staticFiles(folder, { cache: false });
  const server = createServer((req, res) => files(req, res, () => res.end()));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const socket = net.connect((server.address() as AddressInfo).port, '127.0.0.1');
  socket.pause();
  socket.write('GET /big.bin HTTP/1.1\r\nHost: a\r\n\r\n'.repeat(50));
  await until(() => open(file) > 10);
  socket.destroy();
  await until(() => open(file) === 0);
  server.close();
});
