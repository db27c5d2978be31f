/** Headers of one connection over HTTP/1.1, which responses over HTTP/2 must not have (RFC 9113 §8.2.2). */
export const CONNECTION_HEADERS: readonly string[] = [
  'connection',
  'http2-settings',
  'keep-alive',
  'proxy-connection',
  'te',
  'transfer-encoding',
  'upgrade',
];
