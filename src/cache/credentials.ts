import type { ServerResponse } from 'node:http';
import type { TLSSocket } from 'node:tls';
import type { ConnectRequest } from '../../types/connect.ts';
import { hasParameter } from '../http/routing.ts';

/**
 * Request headers that identify a user: credentials, client certificates, and what the known gateways and proxies add
 * after they have authenticated the user.
 */
const IDENTITY_HEADERS: ReadonlySet<string> = new Set(
  `cookie authorization proxy-authorization dpop private-token
   api-key apikey x-api-key x-apikey x-access-key x-goog-api-key x-functions-key ocp-apim-subscription-key
   token x-token x-access-token x-auth x-auth-key x-auth-token x-authorization x-id-token x-jwt x-jwt-assertion
   x-session x-session-id x-session-token x-amz-security-token x-hasura-admin-secret x-shopify-access-token
   signature x-signature x-hub-signature-256 x-client-secret
   user x-user x-user-id x-user-name x-username x-user-email x-user-token x-account-id x-customer-id
   x-login x-email x-principal x-identity remote-user remote-email remote-groups remote-name x-remote-user x-webauth-user
   x-forwarded-user x-forwarded-email x-forwarded-groups x-forwarded-preferred-username x-forwarded-access-token
   x-auth-request-user x-auth-request-email x-auth-request-groups x-auth-request-preferred-username
   x-auth-request-access-token x-authenticated-user x-authenticated-userid x-vouch-user x-vouch-idp-idtoken
   x-authentik-username x-authentik-email x-authentik-uid x-authentik-jwt
   x-consumer-id x-consumer-custom-id x-consumer-username x-credential-identifier x-anonymous-consumer
   x-amzn-oidc-data x-amzn-oidc-identity x-amzn-oidc-accesstoken
   cf-access-jwt-assertion cf-access-authenticated-user-email cf-access-client-id cf-access-client-secret
   x-goog-authenticated-user-email x-goog-authenticated-user-id x-goog-iap-jwt-assertion x-apigateway-api-userinfo
   x-endpoint-api-userinfo x-ms-client-principal x-ms-client-principal-id x-ms-client-principal-name
   x-ms-token-aad-access-token x-ms-token-aad-id-token x-pomerium-jwt-assertion x-pomerium-claim-email
   x-pomerium-claim-user tailscale-user-login tailscale-user-name
   client-cert client-cert-chain x-client-cert x-client-dn x-client-cert-dn x-forwarded-client-cert ssl-client-cert
   ssl-client-s-dn ssl-client-subject-dn x-ssl-client-cert x-ssl-client-dn x-ssl-client-s-dn x-ssl-cert
   x-amzn-mtls-clientcert x-amzn-mtls-clientcert-leaf x-amzn-mtls-clientcert-subject
   x-arr-clientcert x-client-certificate`.split(/\s+/),
);

/** Parameters of the URL that identify a user, such as `access_token` (RFC 6750 §2.3). */
const IDENTITY_PARAMETERS: ReadonlySet<string> = new Set(
  `access_token access-token accesstoken id_token token auth auth_token authorization jwt api_key api-key apikey
   access_key session session_id sessionid sid password secret signature sig x-amz-signature x-goog-signature user user_id userid
   username login`.split(/\s+/),
);

const isIdentityParameter = (name: string): boolean => IDENTITY_PARAMETERS.has(name.toLowerCase());

/**
 * Whether a response may depend on the user that sent the request. Without a key that separates users it must
 * not be stored by shared caches, also if the schema declares it public.
 */
export function hasCredentials(req: ConnectRequest, res: ServerResponse): boolean {
  for (const name in req.headers) if (IDENTITY_HEADERS.has(name)) return true;
  return hasParameter(req.url ?? '', isIdentityParameter) || hasUser(req, res);
}

/** Whether middleware, the connection or a resolver has identified the user. */
export function hasUser(req: ConnectRequest, res: ServerResponse): boolean {
  // Authentication and session middleware add these members.
  if ('user' in req || 'auth' in req || hasSession(req)) return true;
  if (hasCertificate(req)) return true;
  return res.getHeader('set-cookie') !== undefined;
}

/**
 * Whether the response may set the cookie of a session. Middleware such as `express-session` does so when the head is
 * written, after the other headers are known.
 */
export const maySetCookie = (req: ConnectRequest, res: ServerResponse): boolean =>
  hasSession(req) || res.hasHeader('set-cookie');

const hasSession = (req: ConnectRequest): boolean => 'session' in req || 'sessionID' in req;

/** Whether the client has sent a certificate, also if only the application verifies it (`rejectUnauthorized: false`). */
export function hasCertificate(req: Pick<ConnectRequest, 'socket'>): boolean {
  const socket = req.socket as Partial<TLSSocket>;
  if (socket.authorized === true) return true;
  // Without a request for certificates there is no error. An empty object stands for no certificate.
  if (socket.authorizationError == null) return false;
  return Object.keys(socket.getPeerCertificate?.() ?? {}).length > 0;
}
