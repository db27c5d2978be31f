import type { Http2Server, ServerHttp2Stream } from 'node:http2';

/** Milliseconds between two searches for streams that Node does not release. */
const SEARCH_INTERVAL = 5000;
/** NGHTTP2_STREAM_STATE_IDLE: nghttp2 does not know the stream, so nothing more can be sent. */
const UNKNOWN = 1;

/**
 * Destroys streams that the client has reset. After a reset with NO_ERROR, Node waits until the response is written,
 * which never happens if the bytes wait for the flow-control window. The session would wait for the stream, and Node
 * would not notice the end of its connection.
 */
export function releaseResetStreams(server: Pick<Http2Server, 'on'>): void {
  const streams = new Set<ServerHttp2Stream>();
  let timer: NodeJS.Timeout | undefined;
  const search = (): void => {
    for (const stream of streams) if (stream.closed && stream.state.state === UNKNOWN) stream.destroy();
    if (streams.size > 0) timer?.refresh();
    else timer = undefined;
  };
  // Functions that use `this`, so that a stream creates none.
  function forget(this: ServerHttp2Stream): void {
    streams.delete(this);
  }
  server.on('stream', (stream: ServerHttp2Stream) => {
    streams.add(stream);
    timer ??= setTimeout(search, SEARCH_INTERVAL).unref();
    // 'aborted' is emitted unless the response has ended.
    stream.on('aborted', destroy).on('close', forget);
  });
}

function destroy(this: ServerHttp2Stream): void {
  this.destroy();
}
