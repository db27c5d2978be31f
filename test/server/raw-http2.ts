import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { trusted } from '../exchange.ts';
import { until } from '../until.ts';

export const TYPE = {
  data: 0,
  headers: 1,
  reset: 3,
  settings: 4,
  ping: 6,
  goaway: 7,
  window: 8,
  continuation: 9,
};
export const FLAG = { endStream: 1, ack: 1, endHeaders: 4 };

interface Frame {
  readonly type: number;
  readonly flags: number;
  readonly stream: number;
  readonly payload: Buffer;
}

const HEAD_BYTES = 9;

function frame(type: number, flags: number, stream: number, payload: Buffer = Buffer.alloc(0)): Buffer {
  const head = Buffer.alloc(HEAD_BYTES);
  head.writeUIntBE(payload.length, 0, 3);
  head.writeUInt8(type, 3);
  head.writeUInt8(flags, 4);
  head.writeUInt32BE(stream, 5);
  return Buffer.concat([head, payload]);
}

/** A number of four bytes. */
export function uint32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
}

/** A text of HPACK without Huffman coding (RFC 7541 §5.2). */
function text(value: string): Buffer {
  const bytes = Buffer.from(value, 'latin1');
  const length =
    bytes.length < 127
      ? [bytes.length]
      : [127, ((bytes.length - 127) & 127) | 128, (bytes.length - 127) >> 7];
  return Buffer.concat([Buffer.from(length), bytes]);
}

/** Header fields as literals that are not indexed (RFC 7541 §6.2.2). */
export const encodeHeaders = (headers: Readonly<Record<string, string>>): Buffer =>
  Buffer.concat(
    Object.entries(headers).flatMap(([name, value]) => [Buffer.from([0]), text(name), text(value)]),
  );

/**
 * A client of HTTP/2 that writes frames, also in an order and with contents that no library writes. It grants the server
 * only the bytes that a test asks for.
 */
export class RawClient {
  readonly frames: Frame[] = [];
  readonly #socket: Socket;
  #received = Buffer.alloc(0);
  #nextStream = 1;

  private constructor(socket: Socket) {
    this.#socket = socket;
    socket.on('error', () => undefined);
    socket.on('data', (chunk: Buffer) => this.#read(chunk));
  }

  /** Connects with an initial window of `window` bytes for each stream. */
  static async open(port: number, { secure = false, window = 0 } = {}): Promise<RawClient> {
    const socket = secure
      ? connectTls({ ...trusted, port, host: '127.0.0.1', ALPNProtocols: ['h2'] })
      : connect(port, '127.0.0.1');
    const client = new RawClient(socket);
    await once(socket, secure ? 'secureConnect' : 'connect');
    socket.write('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n');
    // SETTINGS_INITIAL_WINDOW_SIZE
    client.send(TYPE.settings, 0, 0, Buffer.concat([Buffer.from([0, 4]), uint32(window)]));
    // The window of the connection is never the limit.
    client.grant(0, 1 << 30);
    return client;
  }

  get isClosed(): boolean {
    return this.#socket.destroyed;
  }

  send(type: number, flags: number, stream: number, payload?: Buffer): void {
    if (!this.#socket.destroyed) this.#socket.write(frame(type, flags, stream, payload));
  }

  /** Sends the head of a request, and its body if there is one; `null`: it follows. Returns the id of the stream. */
  request(
    {
      method = 'GET',
      path,
      headers = {},
    }: { method?: string; path: string; headers?: Record<string, string> },
    body?: string | null,
  ): number {
    const stream = this.#nextStream;
    this.#nextStream += 2;
    const all = {
      ':method': method,
      ':scheme': 'http',
      ':authority': 'localhost',
      ':path': path,
      ...headers,
    };
    const end = body === undefined ? FLAG.endStream : 0;
    this.send(TYPE.headers, FLAG.endHeaders | end, stream, encodeHeaders(all));
    if (typeof body === 'string') this.send(TYPE.data, FLAG.endStream, stream, Buffer.from(body));
    return stream;
  }

  reset(stream: number, code: number): void {
    this.send(TYPE.reset, 0, stream, uint32(code));
  }

  /** Lets the server send further bytes. */
  grant(stream: number, bytes: number): void {
    this.send(TYPE.window, 0, stream, uint32(bytes));
  }

  /** Ends the connection without a word. */
  destroy(): void {
    this.#socket.destroy();
  }

  /** The frames of a type that have arrived for a stream. */
  of(type: number, stream: number): Frame[] {
    return this.frames.filter((each) => each.type === type && each.stream === stream);
  }

  /** The code with which the server has reset a stream. */
  resetCode(stream: number): number | undefined {
    return this.of(TYPE.reset, stream)[0]?.payload.readUInt32BE();
  }

  bytesOf(stream: number): number {
    return this.of(TYPE.data, stream).reduce((sum, { payload }) => sum + payload.length, 0);
  }

  hasEnded(stream: number): boolean {
    return this.frames.some(
      (each) => each.stream === stream && each.type <= 1 && (each.flags & FLAG.endStream) > 0,
    );
  }

  /** Resolves when the server has read everything that was written, or has given the connection up. */
  async settled(): Promise<void> {
    this.send(TYPE.ping, 0, 0, Buffer.alloc(8));
    await until(
      () =>
        this.isClosed ||
        this.of(TYPE.goaway, 0).length > 0 ||
        this.of(TYPE.ping, 0).some(({ flags }) => flags === FLAG.ack),
    );
  }

  #read(chunk: Buffer): void {
    this.#received = Buffer.concat([this.#received, chunk]);
    while (this.#received.length >= HEAD_BYTES) {
      const end = HEAD_BYTES + this.#received.readUIntBE(0, 3);
      if (this.#received.length < end) return;
      const [type, flags] = [this.#received.readUInt8(3), this.#received.readUInt8(4)];
      const stream = this.#received.readUInt32BE(5) & 0x7fff_ffff;
      this.frames.push({ type, flags, stream, payload: this.#received.subarray(HEAD_BYTES, end) });
      this.#received = this.#received.subarray(end);
      if (type === TYPE.settings && (flags & FLAG.ack) === 0) this.send(TYPE.settings, FLAG.ack, 0);
    }
  }
}
