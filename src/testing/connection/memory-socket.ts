import { Socket } from 'node:net';
import { setImmediate } from 'node:timers';

/** Bytes that one side may write before the other side reads, like the buffers of a kernel. */
const KERNEL_BUFFER = 256 * 1024;

/** The members of the socket of a server that describe its client. */
interface Addresses {
  readonly remoteAddress: string;
  /** Whether the connection counts as one with TLS, for `req.secure` of Express. */
  readonly isEncrypted: boolean;
}

/**
 * One end of a connection within the process. It extends Node's `Socket`, because servers and middleware use
 * its members. The chunks that it receives are delivered in later iterations of the event loop, as those of a
 * real connection.
 */
export class MemorySocket extends Socket {
  override readonly remoteAddress: string;
  override readonly remoteFamily: string;
  override readonly remotePort: number = 49_152;
  override readonly localAddress: string;
  override readonly localPort: number = 80;
  override bytesRead = 0;
  override bytesWritten = 0;
  /** The error of the handler, which ends the exchange on this socket. */
  handlerError: { readonly error: unknown } | undefined;
  #peer: MemorySocket = this;
  /** The chunks that this end has received and not read; null marks their end. */
  readonly #received: (Buffer | null)[] = [];
  #receivedBytes = 0;
  #wantsData = true;
  #isScheduled = false;
  /** Continues the write of the other end, which waits until this end has read. */
  #resumePeer: (() => void) | undefined;

  constructor({ remoteAddress, isEncrypted }: Addresses) {
    super({ allowHalfOpen: true });
    const isIPv6 = remoteAddress.includes(':');
    this.remoteAddress = remoteAddress;
    this.remoteFamily = isIPv6 ? 'IPv6' : 'IPv4';
    this.localAddress = isIPv6 ? '::1' : '127.0.0.1';
    if (isEncrypted) Object.defineProperty(this, 'encrypted', { value: true });
  }

  connectTo(peer: MemorySocket): void {
    this.#peer = peer;
  }

  override _read(): void {
    this.#wantsData = true;
    if (this.#received.length > 0) this.#schedule();
  }

  override _write(chunk: string | Uint8Array, encoding: BufferEncoding, done: Done): void {
    this.#transmit(copyOf(chunk, encoding), done);
  }

  override _writev(chunks: { chunk: string | Uint8Array; encoding: BufferEncoding }[], done: Done): void {
    this.#transmit(Buffer.concat(chunks.map(({ chunk, encoding }) => copyOf(chunk, encoding))), done);
  }

  override _final(done: Done): void {
    this.#peer.#receive(null);
    done();
  }

  override _destroy(error: Error | null, done: Done): void {
    this.#peer.#receive(null);
    this.#received.length = 0;
    this.#resumePeer?.();
    super._destroy(error, done);
  }

  // Only handles of the operating system keep a process alive.
  override ref(): this {
    return this;
  }
  override unref(): this {
    return this;
  }

  #transmit(bytes: Buffer, done: Done): void {
    const peer = this.#peer;
    if (peer.destroyed) {
      done(brokenPipe());
      return;
    }
    this.#touch();
    this.bytesWritten += bytes.length;
    peer.#receive(bytes);
    if (peer.#receivedBytes <= KERNEL_BUFFER) done();
    else peer.#resumePeer = () => done(peer.destroyed ? brokenPipe() : null);
  }

  #receive(chunk: Buffer | null): void {
    if (this.destroyed) return;
    this.#received.push(chunk);
    this.#receivedBytes += chunk?.length ?? 0;
    this.#schedule();
  }

  #schedule(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    setImmediate(() => {
      this.#isScheduled = false;
      this.#deliver();
    });
  }

  #deliver(): void {
    while (this.#wantsData && !this.destroyed) {
      const chunk = this.#received.shift();
      if (chunk === undefined) break;
      if (chunk !== null) {
        this.#touch();
        this.bytesRead += chunk.length;
        this.#receivedBytes -= chunk.length;
      }
      // Nothing may follow the end, which both `end` and `destroy` of the other side send.
      if (chunk !== null || !this.readableEnded) this.#wantsData = this.push(chunk);
    }
    if (this.#receivedBytes > KERNEL_BUFFER) return;
    const resume = this.#resumePeer;
    this.#resumePeer = undefined;
    resume?.();
  }

  /** Restarts the timeout of the socket. */
  #touch(): void {
    if (this.timeout !== undefined && this.timeout > 0) this.setTimeout(this.timeout);
  }
}

type Done = (error?: Error | null) => void;

/** Copies a chunk: code that writes to a `Socket` may reuse the buffer as soon as it was written. */
function copyOf(chunk: string | Uint8Array, encoding: BufferEncoding): Buffer {
  return typeof chunk === 'string' ? Buffer.from(chunk, encoding) : Buffer.from(chunk);
}

function brokenPipe(): Error {
  return Object.assign(new Error('write EPIPE'), { code: 'EPIPE', syscall: 'write' });
}

/** Creates the two ends of a connection. */
export function connectInMemory(addresses: Addresses): { client: MemorySocket; server: MemorySocket } {
  const client = new MemorySocket({ ...addresses, remoteAddress: '127.0.0.1' });
  const server = new MemorySocket(addresses);
  client.connectTo(server);
  server.connectTo(client);
  return { client, server };
}
