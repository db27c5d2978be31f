import { optionError, unknownOption, wrongArgument, wrongOption } from '../options/rules.ts';
import { SERVER_OPTIONS } from '../options/scopes.ts';
import { isBoolean, isFunction, isObject } from '../options/values.ts';
import { inherits, loadHttp2, NODE_CLASSES } from './classes.ts';

/** Options that take a class, and the class of Node that it must extend. */
const BASES: Readonly<Record<string, () => { prototype: object; name: string }>> = {
  IncomingMessage: () => NODE_CLASSES.IncomingMessage,
  ServerResponse: () => NODE_CLASSES.ServerResponse,
  Http1IncomingMessage: () => NODE_CLASSES.IncomingMessage,
  Http1ServerResponse: () => NODE_CLASSES.ServerResponse,
  Http2ServerRequest: () => loadHttp2().Http2ServerRequest,
  Http2ServerResponse: () => loadHttp2().Http2ServerResponse,
};

const ACCEPTED_APP = 'a function (req, res), such as an Express app: createServer(app, options)';

const NOT_CALLED =
  'argument "app" is the function express, which would answer no request; pass what it returns: createServer(express())';

/** Whether a value is the export of Express instead of an app. Apps have no `Router`. */
const isExpressFactory = (app: unknown): boolean => isFunction((app as { Router?: unknown }).Router);

const FLAGS = ['http2', 'allowHTTP1', 'webSockets'];

/**
 * Rejects unknown options, which Node would ignore, and values on which Node would fail at the first request.
 * Node checks all other values.
 */
export function checkArguments(app: unknown, options: unknown): void {
  if (!isFunction(app)) throw wrongArgument(SERVER_OPTIONS, 'app', app, ACCEPTED_APP);
  if (isExpressFactory(app)) throw optionError(SERVER_OPTIONS, NOT_CALLED);
  if (!isObject(options)) throw wrongArgument(SERVER_OPTIONS, 'options', options, 'an object');
  for (const [name, value] of Object.entries(options)) {
    if (value === undefined) continue;
    if (!NODE_OPTIONS.includes(name)) throw unknownOption(SERVER_OPTIONS, name, NODE_OPTIONS);
    if (FLAGS.includes(name) && !isBoolean(value))
      throw wrongOption(SERVER_OPTIONS, name, value, 'a boolean');
    const node = Object.hasOwn(BASES, name) ? BASES[name]?.() : undefined;
    if (node !== undefined && !extendsClass(value, node)) {
      throw wrongOption(SERVER_OPTIONS, name, value, `a class that extends Node's ${node.name}`);
    }
  }
  checkHealth(options);
  checkPem(options);
  const { webSockets, http2 } = options;
  if (webSockets === true && http2 !== true) {
    const accepted = 'true only with http2: true; WebSockets over HTTP/1.1 need no option';
    throw wrongOption(SERVER_OPTIONS, 'webSockets', webSockets, accepted);
  }
}

/** Rejects the path of a file, about which OpenSSL says "no start line". The message contains no key. */
function checkPem(options: Readonly<Record<string, unknown>>): void {
  for (const name of ['key', 'cert']) {
    const value = options[name];
    if (typeof value !== 'string' || value.includes('-----BEGIN ')) continue;
    const accepted = `PEM text or a Buffer, such as readFileSync('${name}.pem')`;
    throw optionError(
      SERVER_OPTIONS,
      `option "${name}" is a string without "-----BEGIN"; accepted: ${accepted}`,
    );
  }
}

function checkHealth({ checks }: Readonly<Record<string, unknown>>): void {
  if (checks !== undefined && !(isObject(checks) && Object.values(checks).every(isFunction))) {
    throw wrongOption(SERVER_OPTIONS, 'checks', checks, 'an object of functions');
  }
}

function extendsClass(value: unknown, node: { prototype: object }): boolean {
  return value === node || (typeof value === 'function' && inherits(value.prototype, node.prototype));
}

/** The words of lines of text. */
function words(...lines: readonly string[]): string[] {
  return lines.flatMap((line) => line.split(' '));
}

/** The options of `tls.createServer` and `tls.createSecureContext` (Node 20 to 26). Each selects TLS. */
const TLS_OPTIONS: ReadonlySet<string> = new Set(
  words(
    'ALPNCallback ALPNProtocols SNICallback allowPartialTrustChain ca cert ciphers clientCertEngine crl dhparam',
    'ecdhCurve enableTrace handshakeTimeout honorCipherOrder key maxVersion minVersion passphrase pfx',
    'privateKeyEngine privateKeyIdentifier pskCallback pskIdentityHint rejectUnauthorized requestCert secureOptions',
    'secureProtocol sessionIdContext sessionTimeout sigalgs ticketKeys',
  ),
);

/**
 * Whether options select TLS. One is enough: a server with an incomplete TLS configuration must not serve
 * plain HTTP.
 */
export function hasTlsOption(options: object): boolean {
  return Object.entries(options).some(([name, value]) => value !== undefined && TLS_OPTIONS.has(name));
}

/** The options of `http.createServer` and `net.createServer`. */
const HTTP_OPTIONS: readonly string[] = words(
  'IncomingMessage ServerResponse allowHalfOpen blockList connectionsCheckingInterval headersTimeout',
  'highWaterMark http2 insecureHTTPParser joinDuplicateHeaders keepAlive keepAliveInitialDelay keepAliveTimeout',
  'keepAliveTimeoutBuffer maxHeaderSize noDelay optimizeEmptyRequests pauseOnConnect rejectNonStandardBodyWrites',
  'requestTimeout requireHostHeader shouldUpgradeCallback uniqueHeaders',
);

/** The options of `http2.createServer` and `http2.createSecureServer`. */
const HTTP2_OPTIONS: readonly string[] = words(
  'Http1IncomingMessage Http1ServerResponse Http2ServerRequest Http2ServerResponse allowHTTP1',
  'enableConnectProtocol http1Options maxDeflateDynamicTableSize maxHeaderListPairs maxOriginSetSize',
  'maxOutstandingPings maxReservedRemoteStreams maxSendHeaderBlockLength maxSessionInvalidFrames maxSessionMemory',
  'maxSessionRejectedStreams maxSettings origins paddingStrategy peerMaxConcurrentStreams remoteCustomSettings',
  'selectPadding settings streamResetBurst streamResetRate strictFieldWhitespaceValidation',
  'strictSingleValueFields unknownProtocolTimeout webSockets',
);

/** All options of the Node servers (Node 20 to 26), and our own. */
const NODE_OPTIONS: readonly string[] = [...HTTP_OPTIONS, ...HTTP2_OPTIONS, ...TLS_OPTIONS, 'checks'];
