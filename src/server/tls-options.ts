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

/** Whether options select TLS. One is enough: a server with an incomplete TLS configuration must not serve plain HTTP. */
export function hasTlsOption(options: object): boolean {
  return Object.entries(options).some(([name, value]) => value !== undefined && TLS_OPTIONS.has(name));
}
