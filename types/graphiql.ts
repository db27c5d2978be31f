import type { ServerResponse } from 'node:http';
import type { ConnectRequest, Hook, MaybePromise } from './connect.ts';

/** How the GraphiQL page looks and whom it talks to. Every option has a default; none is needed. */
export interface GraphiQLOptions {
  /**
   * The page's title, as text; markup in it is shown, not obeyed.
   * @default 'GraphiQL'
   */
  title?: string | undefined;
  /**
   * What the editor shows on a first visit; a visitor's own tabs and `?query=` win over it.
   * @default GraphiQL's welcome text
   */
  defaultQuery?: string | undefined;
  /**
   * What the headers editor shows in a new tab: a JSON text, or an object. Everyone who may open the page can read it.
   * @default none
   */
  defaultHeaders?: string | Readonly<Record<string, string>> | undefined;
  /**
   * Whether visitors can edit request headers. They are sent with queries and, as `connectionParams`, with subscriptions.
   * @default true
   */
  headersEditor?: boolean | undefined;
  /**
   * Whether edited headers are kept in the browser's storage. Off, because they often carry a token.
   * @default false
   */
  persistHeaders?: boolean | undefined;
  /**
   * URL that queries and mutations are sent to. A foreign origin is added to the policy's `connect-src`.
   * @default the page's own URL
   */
  endpoint?: string | undefined;
  /**
   * URL that subscriptions are opened on; `http` and `https` become `ws` and `wss`.
   * @default the endpoint
   */
  subscriptionEndpoint?: string | undefined;
  /**
   * Whether the page may open a WebSocket; without it a subscription is answered with a message that says so.
   * @default true
   */
  subscriptions?: boolean | undefined;
  /**
   * `system` follows the visitor's setting and lets them switch; the others are forced.
   * @default 'system'
   */
  theme?: 'system' | 'light' | 'dark' | undefined;
  /**
   * The page's Content-Security-Policy (CSP 3). `true` is the strict one; an object adds sources to it by directive
   * (`{ 'img-src': 'https://images.example' }`); `false` leaves the header to the application.
   * @default true
   */
  csp?: boolean | Readonly<Record<string, string | readonly string[]>> | undefined;
  /**
   * Whether introspection asks for deprecated arguments and input fields; older servers behind `endpoint` may refuse it.
   * @default true
   */
  inputValueDeprecation?: boolean | undefined;
  /**
   * Whether introspection asks for the schema's description; older servers behind `endpoint` may refuse it.
   * @default true
   */
  schemaDescription?: boolean | undefined;
  /** express-graphql's name of `headersEditor`. */
  headerEditorEnabled?: boolean | undefined;
  /** express-graphql's name of `persistHeaders`. */
  shouldPersistHeaders?: boolean | undefined;
  /** express-graphql's name of `defaultHeaders`. */
  headers?: string | Readonly<Record<string, string>> | undefined;
}

/**
 * Decides for one request: `false` and nothing of GraphiQL is there, its files included. Asked for the page and for each
 * of its files (about ten a visit), never for the API's own requests.
 */
export type GraphiQLGate<Req = ConnectRequest> = Hook<
  [req: Req, res: ServerResponse],
  MaybePromise<boolean | GraphiQLOptions>
>;

/** The option `graphiql` of `graphqlHTTP`. */
export type GraphiQLOption<Req = ConnectRequest> = boolean | GraphiQLOptions | GraphiQLGate<Req>;
