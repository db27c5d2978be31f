import type { Socket } from 'node:net';

/** The handle of a TLS socket in Node, with the TCP connection that carries the records. */
interface TlsHandle {
  readonly _parent?: { close(done: () => void): unknown; reset?(done: () => void): number };
}

/**
 * Closes a socket with RST, which discards unsent bytes in the kernel. Otherwise the kernel would send them as soon
 * as the network works again. The socket of a `path` has no RST.
 */
export function resetSocket(socket: Socket): void {
  if (!('encrypted' in socket)) {
    // `resetAndDestroy` throws for the socket of a `path`.
    if (socket.remoteAddress === undefined) socket.destroy();
    else socket.resetAndDestroy();
    return;
  }
  // Node has no `resetAndDestroy` for TLS, so the connection below it is closed with RST instead of FIN.
  const handle: TlsHandle | null | undefined = Reflect.get(socket, '_handle');
  const tcp = handle?._parent;
  if (tcp?.reset !== undefined) {
    const { close, reset } = tcp;
    tcp.close = (done) => {
      // RST is not possible after `end`.
      if (reset.call(tcp, done) !== 0) close.call(tcp, done);
    };
  }
  socket.destroy();
}
