import type { IncomingMessage } from 'node:http';
import type { Hook, MaybePromise } from './connect.ts';
import type { ProcessStats } from './server.ts';

/** Options of `inspect`. */
export interface InspectOptions {
  /**
   * Decides who may see the figures: others get 403. Without it the page is off, unless `NODE_ENV` is `development` or
   * `test`.
   * @default with `NODE_ENV` `development` or `test`, every client
   */
  guard?: Hook<[req: IncomingMessage], MaybePromise<boolean>> | undefined;
}

/** Durations in milliseconds. Null if there are none. */
export interface Latencies {
  readonly p50: number | null;
  readonly p99: number | null;
  readonly max: number | null;
}

/** The figures of one operation in the last five minutes; of a subscription, of its events. */
export interface OperationFigures extends Latencies {
  readonly type: 'query' | 'mutation' | 'subscription' | 'other';
  readonly name: string;
  readonly requests: number;
  readonly errors: number;
  /** Requests since the start. */
  readonly total: number;
}

/** Errors with one code. */
export interface ErrorFigures {
  readonly code: string;
  readonly count: number;
  /** The message of the last one, before masking. */
  readonly message: string;
  readonly operation: string | null;
  /** An ISO date. */
  readonly last: string;
}

/** The use of a deprecated part of a schema by one client, since the start. */
export interface DeprecatedFigures {
  /** Such as `User.email`. */
  readonly coordinate: string;
  readonly client: string;
  readonly count: number;
  /** An ISO date. */
  readonly last: string;
}

/** Lookups in a cache since the start. */
export interface LookupFigures {
  readonly hits: number;
  readonly misses: number;
}

/** The figures that `inspect` shows, for this process. */
export interface InspectFigures extends ProcessStats {
  /** An ISO date. */
  readonly time: string;
  readonly process: {
    readonly pid: number;
    readonly node: string;
    /** Seconds. */
    readonly uptime: number;
  };
  /** Operations of all transports in the last five minutes. */
  readonly requests: Latencies & {
    readonly count: number;
    readonly errors: number;
    /** Since the start. */
    readonly total: number;
    readonly active: number;
  };
  /** Operations and their errors per second in the last two minutes; the last item is the current second. */
  readonly history: { readonly requests: readonly number[]; readonly errors: readonly number[] };
  readonly operations: readonly OperationFigures[];
  /** The most recent errors first. */
  readonly errors: readonly ErrorFigures[];
  /** The most recent use first; null if no handler has the option `usage`. */
  readonly deprecated: readonly DeprecatedFigures[] | null;
  /** The tools that agents may call over MCP; null without an endpoint of `espalier/mcp`. */
  readonly tools: readonly { readonly name: string; readonly description: string }[] | null;
  /** `responses` are those of the option `responseCache`. */
  readonly lookups: {
    readonly documents: LookupFigures;
    readonly responses: LookupFigures;
    readonly files: LookupFigures;
  };
  /** HTTP responses of GraphQL and of static files by status, since the start. */
  readonly statuses: {
    readonly graphql: Readonly<Record<string, number>>;
    readonly files: Readonly<Record<string, number>>;
  };
  readonly uploaded: {
    readonly requests: number;
    readonly files: number;
    readonly bytes: number;
    readonly failed: number;
  };
  readonly pubsub: { readonly published: number; readonly failed: number; readonly delivered: number };
}
