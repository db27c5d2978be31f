import { once } from 'node:events';
import net from 'node:net';
import tls from 'node:tls';
import { trusted } from '../exchange.ts';
import { MODERN } from './client.ts';

/** A socket of raw bytes; every wait has a deadline. */
interface Wire {
  readonly socket: net.Socket;
  /** All bytes received, once they contain `words`; fails if the socket closes before. */
  until(words: string | Buffer): Promise<Buffer>;
  /** All bytes received, once the socket is closed. */
  over(): Promise<Buffer>;
}

/** An upgrade request as text, headers in addition to those it needs. */
export function upgradeRequest(
  headers: Record<string, string> = { 'Sec-WebSocket-Protocol': MODERN },
): string {
  const all = {
    Host: 'x',
    Connection: 'Upgrade',
    Upgrade: 'websocket',
    'Sec-WebSocket-Version': '13',
    'Sec-WebSocket-Key': 'dGhlIHNhbXBsZSBub25jZQ==',
    ...headers,
  };
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`);
  return `GET /graphql HTTP/1.1\r\n${lines.join('')}\r\n`;
}

export const TEXT = 1;
export const CONTINUATION = 0;

/** A frame of a client: masked, with a mask of zeros. */
export function frame(opcode: number, payload: string | Buffer, final = true): Buffer {
  const body = Buffer.from(payload as string);
  return Buffer.concat([frameHead(opcode, body.length, final), body]);
}

/** The start of a frame whose payload is still to come. */
export function frameHead(opcode: number, length: number, final = true): Buffer {
  const first = (final ? 0x80 : 0) | opcode;
  const head = length < 126 ? [first, 0x80 | length] : [first, 0xff, ...eightBytes(length)];
  return Buffer.from([...head, 0, 0, 0, 0]);
}

function eightBytes(value: number): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64BE(BigInt(value));
  return bytes;
}

/** The frame that a server closes with, as it is on the wire. */
export function closeFrame(code: number, reason: string): Buffer {
  const text = Buffer.from(reason);
  return Buffer.concat([Buffer.from([0x88, text.length + 2, code >> 8, code & 255]), text]);
}

/** Connects and writes. The test handles an incomplete response. */
export async function wire(port: number, secure: boolean, ...first: (string | Buffer)[]): Promise<Wire> {
  const socket = secure
    ? tls.connect({ ...trusted, port, host: '127.0.0.1' })
    : net.connect({ port, host: '127.0.0.1' });
  socket.on('error', () => undefined);
  let seen = Buffer.alloc(0);
  let changed: () => void = () => undefined;
  socket.on('data', (part) => {
    seen = Buffer.concat([seen, part]);
    changed();
  });
  socket.on('close', () => changed());
  await once(socket, secure ? 'secureConnect' : 'connect');
  for (const bytes of first) socket.write(bytes);

  async function receiveUntil(enough: () => boolean): Promise<Buffer> {
    const deadline = AbortSignal.timeout(20_000);
    while (!enough()) {
      if (socket.destroyed) throw new Error(`the socket is over after ${seen.toString('latin1')}`);
      await new Promise<void>((resolve, reject) => {
        changed = resolve;
        deadline.onabort = () => reject(new Error(`nothing more after ${seen.toString('latin1')}`));
      });
    }
    return seen;
  }
  return {
    socket,
    until: (words) => receiveUntil(() => seen.includes(words)),
    over: () => receiveUntil(() => socket.destroyed),
  };
}
