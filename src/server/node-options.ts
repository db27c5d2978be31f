/** The options of `tls.createServer` and `tls.createSecureContext` (Node 20 to 26). Each selects TLS. */
const TLS_OPTIONS: ReadonlySet<string> = new Set([
  'ALPNCallback',
  'ALPNProtocols',
  'SNICallback',
  'allowPartialTrustChain',
  'ca',
  'cert',
  'ciphers',
  'clientCertEngine',
  'crl',
  'dhparam',
  'ecdhCurve',
  'enableTrace',
  'handshakeTimeout',
  'honorCipherOrder',
  'key',
  'maxVersion',
  'minVersion',
  'passphrase',
  'pfx',
  'privateKeyEngine',
  'privateKeyIdentifier',
  'pskCallback',
  'pskIdentityHint',
  'rejectUnauthorized',
  'requestCert',
  'secureOptions',
  'secureProtocol',
  'sessionIdContext',
  'sessionTimeout',
  'sigalgs',
  'ticketKeys',
]);

/**
 * Whether options select TLS. One is enough: a server with an incomplete TLS configuration must not serve
 * plain HTTP.
 */
export function hasTlsOption(options: object): boolean {
  return Object.entries(options).some(([name, value]) => value !== undefined && TLS_OPTIONS.has(name));
}

/** The options of `http.createServer` and `net.createServer`. */
const HTTP_OPTIONS: readonly string[] = [
  'IncomingMessage',
  'ServerResponse',
  'allowHalfOpen',
  'blockList',
  'connectionsCheckingInterval',
  'headersTimeout',
  'highWaterMark',
  'http2',
  'insecureHTTPParser',
  'joinDuplicateHeaders',
  'keepAlive',
  'keepAliveInitialDelay',
  'keepAliveTimeout',
  'keepAliveTimeoutBuffer',
  'maxHeaderSize',
  'noDelay',
  'optimizeEmptyRequests',
  'pauseOnConnect',
  'rejectNonStandardBodyWrites',
  'requestTimeout',
  'requireHostHeader',
  'shouldUpgradeCallback',
  'uniqueHeaders',
];

/** The options of `http2.createServer` and `http2.createSecureServer`. */
const HTTP2_OPTIONS: readonly string[] = [
  'Http1IncomingMessage',
  'Http1ServerResponse',
  'Http2ServerRequest',
  'Http2ServerResponse',
  'allowHTTP1',
  'enableConnectProtocol',
  'http1Options',
  'maxDeflateDynamicTableSize',
  'maxHeaderListPairs',
  'maxOriginSetSize',
  'maxOutstandingPings',
  'maxReservedRemoteStreams',
  'maxSendHeaderBlockLength',
  'maxSessionInvalidFrames',
  'maxSessionMemory',
  'maxSessionRejectedStreams',
  'maxSettings',
  'origins',
  'paddingStrategy',
  'peerMaxConcurrentStreams',
  'remoteCustomSettings',
  'selectPadding',
  'settings',
  'streamResetBurst',
  'streamResetRate',
  'strictFieldWhitespaceValidation',
  'strictSingleValueFields',
  'unknownProtocolTimeout',
  'webSockets',
];

const HEALTH_OPTIONS: readonly string[] = ['checks', 'checkTimeout'];

/** All options of the Node servers (Node 20 to 26), and our own. */
export const NODE_OPTIONS: readonly string[] = [
  ...HTTP_OPTIONS,
  ...HTTP2_OPTIONS,
  ...TLS_OPTIONS,
  ...HEALTH_OPTIONS,
];
