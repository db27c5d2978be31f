import type { ServerResponse } from 'node:http';
import type { ConnectRequest, Hook, MaybePromise } from './connect.ts';

/** Options of the GraphiQL page. All are optional. */
export interface GraphiQLOptions {
  /**
   * Query in the editor on the first visit. Saved tabs and `?query=` take precedence.
   * @default a query from the schema
   */
  defaultQuery?: string | undefined;
  /**
   * URL for queries and mutations. Another origin is added to `connect-src` of the page's policy.
   * @default the page's own URL
   */
  endpoint?: string | undefined;
  /**
   * URL for subscriptions; `http` and `https` become `ws` and `wss`. With `false` the page opens no WebSocket, and a
   * subscription shows an error message.
   * @default the endpoint
   */
  subscriptionEndpoint?: string | false | undefined;
}

/**
 * Decides per request: `false` turns off the page and its files. Called for the page and for each of its
 * files (about ten per visit), never for requests to the API.
 */
export type GraphiQLGate<Req = ConnectRequest> = Hook<
  [req: Req, res: ServerResponse],
  MaybePromise<boolean | GraphiQLOptions>
>;

/** The option `graphiql` of `graphqlHTTP`. */
export type GraphiQLOption<Req = ConnectRequest> = boolean | GraphiQLOptions | GraphiQLGate<Req>;
