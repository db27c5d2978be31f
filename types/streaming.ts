import type { ConnectRequest, Hook } from './connect.ts';

/** Options of subscriptions over HTTP. */
export interface EventStreamOptions<Req = ConnectRequest> {
  /**
   * Whether a client may use one event stream for several operations (GraphQL over server-sent events, single
   * connection mode). PUT and DELETE are then accepted for reservations.
   * @default true
   */
  single?: boolean | undefined;
  /** Milliseconds between messages that keep a stream open through proxies; 0: none. @default 12000 */
  ping?: number | undefined;
  /**
   * Reservations of one client address, or IPv6 network of 64 bits, that wait for their stream; one more gets
   * 429. They expire after 10 s.
   * @default 100
   */
  maxReservations?: number | undefined;
  /**
   * Returns the user of a request. Requests of another user cannot use a reservation. Without it the random
   * token alone gives access.
   * @default none
   */
  user?: Hook<[req: Req], unknown> | undefined;
}

/** Options of incremental delivery. */
export interface IncrementalOptions {
  /**
   * The format of payloads for clients that name none: of the specification's drafts since 2024 (`pending`
   * and `id`), or of 2022 (`path`).
   * @default 'v0.2', and '20220824' for documents with `@stream`
   */
  format?: 'v0.2' | '20220824' | undefined;
}
