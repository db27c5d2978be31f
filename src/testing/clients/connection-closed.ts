/** The server has refused or closed the connection of `subscribe`. */
export class ConnectionClosedError extends Error {
  override readonly name = 'ConnectionClosedError';
  /** The code of the close frame (RFC 6455 §7.4), such as 4403; undefined for a refused handshake. */
  readonly code: number | undefined;
  /** The status of a refused handshake, or of a request for an event stream; undefined for a close frame. */
  readonly status: number | undefined;
  /** The reason of the close frame, or the body of the response. */
  readonly reason: string;

  constructor({ code, status, reason }: { code?: number; status?: number; reason: string }) {
    const what =
      status === undefined
        ? `The server closed the connection with ${code}`
        : `The server refused the connection with status ${status}`;
    super(reason === '' ? what : `${what}: ${reason}`);
    this.code = code;
    this.status = status;
    this.reason = reason;
  }
}
