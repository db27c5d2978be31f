/** The options of `tls.createServer` and `tls.createSecureContext` (Node 20 to 26), each of which asks for TLS. */
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

/** Whether options ask for TLS. One is enough, so that a half configured server is never a plain one. */
export function asksForTls(options: object): boolean {
  return Object.entries(options).some(([name, value]) => value !== undefined && TLS_OPTIONS.has(name));
}
