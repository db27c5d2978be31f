import { randomBytes } from 'node:crypto';
import net from 'node:net';
import { constants, deflateRawSync, inflateRawSync, type ZlibOptions } from 'node:zlib';
import { atEnd } from '../kit.ts';
import { MODERN } from './client.ts';
import { CONTINUATION, TEXT, upgradeRequest } from './wire.ts';

/** The first bit of the first byte of a frame: the message is complete. */
export const FIN = 0x80;
/** The second bit: the message is compressed. */
export const RSV1 = 0x40;

/** A frame of a server. */
interface Frame {
  readonly first: number;
  readonly payload: Buffer;
}

/** A frame of a client, with a random mask and the shortest length (RFC 6455 §5.2). */
export function clientFrame(first: number, payload: Buffer): Buffer {
  const { length } = payload;
  const head = Buffer.alloc(length < 126 ? 2 : length < 65_536 ? 4 : 10);
  head[0] = first;
  head[1] = 0x80 | (length < 126 ? length : length < 65_536 ? 126 : 127);
  if (head.length === 4) head.writeUInt16BE(length, 2);
  if (head.length === 10) head.writeBigUInt64BE(BigInt(length), 2);
  const mask = randomBytes(4);
  return Buffer.concat([head, mask, payload.map((byte, index) => byte ^ (mask[index & 3] as number))]);
}

const TAIL = Buffer.from([0, 0, 0xff, 0xff]);

/** The payload of a compressed message (RFC 7692 §7.2.1). */
export const deflate = (data: string | Buffer, options: ZlibOptions = {}): Buffer =>
  deflateRawSync(data, { finishFlush: constants.Z_SYNC_FLUSH, ...options }).subarray(0, -TAIL.length);

/** The text of a compressed message, without the window of others (RFC 7692 §7.2.2). */
export const inflate = (payload: Buffer): string =>
  inflateRawSync(Buffer.concat([payload, TAIL]), { finishFlush: constants.Z_SYNC_FLUSH }).toString();

/** The frames of a compressed message, which is sent in pieces of `size` bytes. */
export function compressedFrames(payload: Buffer, size = Number.POSITIVE_INFINITY): Buffer[] {
  const frames = [];
  for (let at = 0; at === 0 || at < payload.length; at += size) {
    const opcode = at === 0 ? TEXT | RSV1 : CONTINUATION;
    const fin = at + size < payload.length ? 0 : FIN;
    frames.push(clientFrame(fin | opcode, payload.subarray(at, at + size)));
  }
  return frames;
}

/** A client of RFC 6455 and RFC 7692 in raw bytes. */
export class Peer {
  readonly socket: net.Socket;
  /** The response to the upgrade. */
  head = '';
  #bytes = Buffer.alloc(0);
  readonly #frames: Frame[] = [];
  #changed: () => void = () => undefined;

  private constructor(port: number) {
    this.socket = net.connect({ port, host: '127.0.0.1' });
    this.socket.on('error', () => undefined);
    this.socket.on('close', () => this.#changed());
    this.socket.on('data', (chunk) => {
      this.#bytes = Buffer.concat([this.#bytes, chunk]);
      if (this.head === '') this.#readHead();
      while (this.head !== '' && this.#readFrame());
      this.#changed();
    });
    // Before the server, which would wait for the reply to its close frame.
    atEnd(() => this.socket.destroy());
  }

  /** Sends the upgrade request with these offers, and reads the response. */
  static async upgrade(port: number, offers?: string): Promise<Peer> {
    const peer = new Peer(port);
    const extensions = offers === undefined ? {} : { 'Sec-WebSocket-Extensions': offers };
    peer.socket.write(upgradeRequest({ 'Sec-WebSocket-Protocol': MODERN, ...extensions }));
    await peer.#until(() => peer.head !== '');
    return peer;
  }

  /** A peer whose connection was accepted. */
  static async ready(port: number, offers?: string): Promise<Peer> {
    const peer = await Peer.upgrade(port, offers);
    peer.sendPlain('{"type":"connection_init"}');
    await peer.message();
    return peer;
  }

  /** What the server has agreed to; undefined without an extension. */
  get agreed(): string | undefined {
    return /^Sec-WebSocket-Extensions: (.*)$/im.exec(this.head)?.[1];
  }

  sendPlain(text: string): void {
    this.send(clientFrame(FIN | TEXT, Buffer.from(text)));
  }

  send(...frames: readonly Buffer[]): void {
    this.socket.write(Buffer.concat(frames));
  }

  /** The next frame. */
  async frame(): Promise<Frame> {
    await this.#until(() => this.#frames.length > 0);
    return this.#frames.shift() as Frame;
  }

  /** The text of the next message. */
  async message(): Promise<string> {
    const { first, payload } = await this.frame();
    if (first === (FIN | TEXT)) return payload.toString();
    if (first === (FIN | RSV1 | TEXT)) return inflate(payload);
    throw new Error(`the frame starts with ${first.toString(16)}: ${payload.toString('latin1')}`);
  }

  /** The code that the server closes with, after the messages before it. */
  async closeCode(): Promise<number> {
    for (;;) {
      const { first, payload } = await this.frame();
      if (first === (FIN | 8)) return payload.readUInt16BE(0);
    }
  }

  async #until(holds: () => boolean): Promise<void> {
    while (!holds()) {
      if (this.socket.destroyed) throw new Error(`the socket has closed after ${this.head}`);
      await new Promise<void>((resolve) => {
        this.#changed = resolve;
      });
    }
  }

  #readHead(): void {
    const end = this.#bytes.indexOf('\r\n\r\n');
    if (end === -1) return;
    this.head = this.#bytes.toString('latin1', 0, end).replaceAll('\r', '');
    this.#bytes = this.#bytes.subarray(end + 4);
  }

  #readFrame(): boolean {
    const bytes = this.#bytes;
    const short = bytes[1] ?? 0;
    const head = short < 126 ? 2 : short === 126 ? 4 : 10;
    if (bytes.length < head) return false;
    const length = head === 2 ? short : head === 4 ? bytes.readUInt16BE(2) : Number(bytes.readBigUInt64BE(2));
    if (bytes.length < head + length) return false;
    this.#frames.push({ first: bytes[0] as number, payload: bytes.subarray(head, head + length) });
    this.#bytes = bytes.subarray(head + length);
    return true;
  }
}
