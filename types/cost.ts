import type { ContextSource, Hook, MaybePromise } from './connect.ts';

/**
 * Options of the cost of operations, which `@cost` and `@listSize` of the IBM specification set in the schema
 * (https://ibm.github.io/graphql-specs/cost-spec.html).
 */
export interface CostOptions {
  /** The highest cost of an operation, and of a batch; more is refused with the code `COST_LIMIT`. @default 1000 */
  maxCost?: number | undefined;
  /** Refuses no operation; the header and the channel `espalier:graphql:cost` show its cost. @default false */
  reportOnly?: boolean | undefined;
  /** Sends the cost of an operation in the header `GraphQL-Cost`, such as `GraphQL-Cost: 42;max=1000`. @default false */
  header?: boolean | undefined;
  /** The assumed number of items of a list without `@listSize`. @default 10 */
  listSize?: number | undefined;
  /** The cost of a mutation in addition to its fields. @default 10 */
  mutation?: number | undefined;
}

/** The members of an ioredis client, or of its `Cluster`, that budgets use. */
export interface BudgetClient {
  readonly status: string;
  evalsha(sha: string, keys: number, ...args: (string | number)[]): Promise<unknown>;
  eval(script: string, keys: number, ...args: (string | number)[]): Promise<unknown>;
}

/** Options of budgets: each key has a token bucket, which operations take tokens from. */
export interface BudgetOptions<Source = ContextSource> {
  /** The tokens of a full bucket. */
  limit: number;
  /** Milliseconds in which an empty bucket becomes full again. @default 60000 */
  window?: number | undefined;
  /** The meaning of one token: a unit of the operation's cost, or one operation. @default 'cost' */
  unit?: 'cost' | 'operations' | undefined;
  /**
   * Returns the key of an operation: a user, an API key, an address. `undefined` means no budget. The context
   * is the value of the option `context`.
   * @default the client's address: `req.ip`, or that of the socket; the first 64 bits of an IPv6 address
   */
  key?: Hook<[source: Source, context: unknown], MaybePromise<string | undefined>> | undefined;
  /**
   * An ioredis client. The processes with the same Redis and `prefix` then share the buckets. It is used as it
   * is; the application closes it. Without it each process has its own buckets.
   * @default none
   */
  redis?: BudgetClient | undefined;
  /** Prefix of the keys in Redis. @default 'espalier:budget:' */
  prefix?: string | undefined;
  /** Milliseconds to wait for Redis. @default 100 */
  timeout?: number | undefined;
  /**
   * When Redis is unavailable: `'local'` uses buckets of this process, `'open'` executes every operation, and
   * `'closed'` refuses every operation with 503. @default 'local'
   */
  onUnavailable?: 'local' | 'open' | 'closed' | undefined;
}
