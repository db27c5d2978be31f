/** @tags node-lines */
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { Duplex } from 'node:stream';
import { staticFiles } from '../../middleware/static.ts';
import { makeFolder } from '../kit.ts';

/** One end of a connection in memory. Like every stream, it may pass a chunk on after its write has finished. */
class End extends Duplex {
  peer: End | undefined;
  readonly received: Buffer[] = [];

  override _read(): void {}

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: () => void): void {
    this.peer?.received.push(chunk);
    setImmediate(() => {
      this.peer?.push(chunk);
      done();
    });
  }

  override _final(done: () => void): void {
    this.peer?.push(null);
    done();
  }
}

const folder = makeFolder();

it('staticFiles sends each byte of a large file over a connection that is not a socket', async () => {
  const size = 20 << 20;
  const content = Buffer.alloc(size);
  for (let at = 0; at < size; at += 4096) content.writeUInt32LE(at, at);
  writeFileSync(join(folder, 'big.bin'), content);
  const files = staticFiles(folder);
  const server = createServer((req, res) => files(req, res, () => res.end()));
  const [client, connection] = [new End(), new End()];
  [client.peer, connection.peer] = [connection, client];
  server.emit('connection', connection);
  client.write('GET /big.bin HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n');
  client.resume();
  await once(client, 'end');
  // The chunks are compared after all of them have arrived.
  const received = Buffer.concat(client.received);
  const body = received.subarray(received.indexOf('\r\n\r\n') + 4);
  expect(body.length).toBe(size);
  expect(body.equals(content)).toBe(true);
});
