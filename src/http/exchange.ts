import type { ServerResponse } from 'node:http';
import type { TLSSocket } from 'node:tls';
import type { GraphQLError } from 'graphql';
import type { CachePolicy } from '../../types/caching.ts';
import type { Caller } from '../../types/caller.ts';
import type { ConnectRequest, MaybePromise, NextFunction } from '../../types/connect.ts';
import type { Coding } from './codings.ts';
import type { Negotiated } from './negotiation.ts';
import type { Headers } from './reply.ts';

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
  /** The name of the operation that is executed, for reports of errors. */
  operationName: string | undefined;
  /** The size of the batch; undefined for a single operation. */
  batchSize: BatchSize | undefined;
  /** Whether an error of one operation is the response of its batch: the results of the others are not sent. */
  isAbandoned: boolean;
  /** Whether the result is changed after its execution, so that it must not be compressed already. */
  isExtended: boolean;
  /** The caching of the result; undefined if caching is off, and for batches. */
  caching: ResultCaching | undefined;
  /** The caller; undefined until it is asked for. */
  caller: { readonly found: MaybePromise<Caller | null> } | undefined;
  /** Whether the result depends on what the caller may see. */
  isRestricted: boolean;
  /** The return value of the option `responseCache.key`: null if the result is not stored; undefined without the option. */
  userKey: string | null | undefined;
}

/** The data that the caching headers of a result depend on. */
export interface ResultCaching {
  policy(): CachePolicy;
  /** Returns the strong ETag of a body, if it is known, or creates it. */
  etagOf?(body: string | Buffer, create: () => string): string;
  /** Returns the coding of a body that was stored compressed. */
  codingOf?(body: string | Buffer): Coding | undefined;
  /** Stores the compressed form of a stored body. */
  keepEncoded?(body: string | Buffer, encoded: EncodedBody): void;
  /** Seconds since the result was created, for one that is stored. */
  readonly age?: number | undefined;
}

/** A body that was compressed. */
export interface EncodedBody {
  readonly coding: Coding;
  readonly bytes: Buffer;
  /** Creates its strong ETag; undefined if responses have none. */
  createTag(): string | undefined;
}

/** The size of the operations of one batch so far. Together they have the limits of one operation. */
interface BatchSize {
  fields: number;
  rootFields: number;
}

/** The response to one operation or one batch, before it is written. */
export interface GraphQLResponse {
  readonly status: number;
  readonly type: string;
  readonly body: string | Buffer;
  /** Releases a body in a pooled buffer; see `ExecutionOutcome`. */
  readonly release?: (() => void) | undefined;
  /** Headers of a refused request, or headers that errors of resolvers set. */
  readonly headers: Headers | undefined;
  /** Holds the errors before masking, which some outcomes create when they are read. */
  readonly cause: ResponseCause;
}

/** The result that a response is made of: of an execution, or `error` if there was none. */
export interface ResponseCause {
  readonly kind: 'data' | 'partial' | 'refused' | 'error';
  readonly errors: readonly GraphQLError[];
}

/** Whether a cache may store the result. */
export const isCacheable = ({ maxAge, sharedMaxAge }: CachePolicy): boolean => maxAge > 0 || sharedMaxAge > 0;

/** Whether the client has sent a certificate, also if only the application verifies it (`rejectUnauthorized: false`). */
export function hasCertificate(req: Pick<ConnectRequest, 'socket'>): boolean {
  const socket = req.socket as Partial<TLSSocket>;
  if (socket.authorized === true) return true;
  // Without a request for certificates there is no error. An empty object stands for no certificate.
  if (socket.authorizationError == null) return false;
  return Object.keys(socket.getPeerCertificate?.() ?? {}).length > 0;
}
