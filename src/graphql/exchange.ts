import type { ServerResponse } from 'node:http';
import type { CachePolicy } from '../../types/caching.ts';
import type { ConnectRequest, NextFunction } from '../../types/connect.ts';
import type { ExecutionOutcome, RequestError } from '../execution/types.ts';
import type { Negotiated } from '../http/negotiation.ts';
import type { StreamOperation } from '../live/event-stream.ts';
import type { Reservation } from '../streams/reservations.ts';
import type { Timings } from './timings.ts';

/** One request with its response and the state of its processing. */
export interface Exchange {
  readonly req: ConnectRequest;
  readonly res: ServerResponse;
  /** The `next` function; undefined in a bare `node:http` server. */
  readonly next: NextFunction | undefined;
  /** The media types of a GraphQL response that the client accepts. */
  readonly accepted: Negotiated;
  /** The time of the request (`performance.now()`); 0 if the response channel has no subscriber. */
  readonly started: number;
  /** The durations for `Server-Timing`; undefined when the option is off. */
  readonly timings: Timings | undefined;
  /** The name of the operation that is executed, for reports of errors. */
  operationName: string | undefined;
  /** The cost of the batch; undefined for a single operation. */
  batchCost: BatchCost | undefined;
  /** Whether an error of one operation is the response of its batch: the results of the others are not sent. */
  isAbandoned: boolean;
  /** The reserved event stream that gets the results; undefined if this response contains them. */
  reservation: Reservation | undefined;
  /** The operation of the reserved event stream. */
  operation: StreamOperation | undefined;
  /** The caching of the result; undefined if caching is off, and for batches. */
  caching: ResultCaching | undefined;
  /** The return value of the option `cache.key`: null if the result is not stored; undefined without the option. */
  userKey: string | null | undefined;
  /** The tags that the mutations of the request have invalidated. */
  invalidatedTags: readonly string[] | undefined;
}

/** The data that the caching headers of a result depend on. */
export interface ResultCaching {
  policy(): CachePolicy;
  /** Returns the strong ETag of a body, if it is known, or creates it. */
  etagOf?(body: string | Buffer, create: () => string): string;
  /** Seconds since the result was created, for one that is stored. */
  readonly age?: number | undefined;
}

/** The result of a request whose response has begun, because it is a stream. */
export const STREAMED: unique symbol = Symbol('streamed');

/** The result of one operation. */
export type Result = ExecutionOutcome | RequestError | typeof STREAMED;

/** The cost of the operations of one batch so far. Together they have the limits of one operation. */
interface BatchCost {
  fields: number;
  rootFields: number;
  /** The cost by the option `cost`. */
  price: number;
}
