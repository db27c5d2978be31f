import { EventEmitter, on } from 'node:events';
import { buildSchema, GraphQLError, type GraphQLSchema } from 'graphql';

/** Counters and controls of the test schema's sources. */
export interface Live {
  /** Sources that are open now. */
  open: number;
  /** Sources that were ever opened. */
  opened: number;
  /** Resolver calls per field. */
  calls: Record<string, number>;
  publish(topic: string, payload: unknown): void;
  /** Ends, or fails, the sources of a topic. */
  end(topic: string, error?: Error): void;
  /** Resolves `pending` operations. */
  resolvePending: () => void;
  /** The abort signal of the last `hold` call. */
  signal: AbortSignal | undefined;
}

/** A hand-written source: unlike `on` of node:events, it can be returned while `next` is pending. */
function source(live: Live, bus: EventEmitter, topic: string): AsyncIterableIterator<unknown> {
  const queue: IteratorResult<unknown>[] = [];
  const waiting: ((result: IteratorResult<unknown> | Promise<never>) => void)[] = [];
  let failure: Error | undefined;
  let over = false;
  const push = (result: IteratorResult<unknown>): void => {
    const take = waiting.shift();
    if (take === undefined) queue.push(result);
    else take(result);
  };
  const listener = (payload: unknown): void => push({ done: false, value: payload });
  const finish = (): void => {
    if (over) return;
    over = true;
    live.open--;
    bus.off(topic, listener);
    bus.off(`end ${topic}`, ended);
    while (waiting.length > 0) push({ done: true, value: undefined });
  };
  const ended = (error?: Error): void => {
    failure = error;
    if (error === undefined) push({ done: true, value: undefined });
    else if (waiting.length > 0) waiting.shift()?.(Promise.reject(error));
  };
  live.open++;
  live.opened++;
  bus.on(topic, listener);
  bus.on(`end ${topic}`, ended);
  return {
    next() {
      const ready = queue.shift();
      if (ready !== undefined) return Promise.resolve(ready);
      if (failure !== undefined) return Promise.reject(failure);
      if (over) return Promise.resolve({ done: true, value: undefined });
      return new Promise((resolve) => waiting.push(resolve));
    },
    return() {
      finish();
      return Promise.resolve({ done: true, value: undefined });
    },
    [Symbol.asyncIterator]() {
      return this;
    },
  };
}

/** The argument of resolvers that graphql 17 adds. */
interface WithSignal {
  getAbortSignal?(): AbortSignal;
}

export function liveSchema(): { schema: GraphQLSchema; live: Live } {
  const bus = new EventEmitter().setMaxListeners(0);
  let release: () => void = () => undefined;
  const pending = new Promise<string>((resolve) => {
    release = () => resolve('pending');
  });
  const live: Live = {
    open: 0,
    opened: 0,
    calls: {},
    publish: (topic, payload) => void bus.emit(topic, payload),
    end: (topic, error) => void bus.emit(`end ${topic}`, error),
    resolvePending: () => release(),
    signal: undefined,
  };
  const schema = buildSchema(`
    type Query { hello(name: String): String, context: String, fails: String, crashes: String, pending: String, deep: Query, big(bytes: Int!): String }
    type Mutation { set(value: String!): String, hold: String }
    type Subscription { events(topic: String!, tag: Boolean): String, count(to: Int!): Int, refused: String, broken: String, late(topic: String!): String, sensitive(topic: String!): String, blobs(count: Int!, bytes: Int!): String }
  `);
  const called = (name: string): void => {
    live.calls[name] = (live.calls[name] ?? 0) + 1;
  };
  const query = schema.getQueryType()?.getFields() ?? {};
  const resolve = (fields: typeof query, name: string, resolver: (...args: never[]) => unknown): void => {
    (fields[name] as { resolve?: unknown }).resolve = (...args: never[]) => {
      called(name);
      return resolver(...args);
    };
  };
  resolve(query, 'hello', (_: unknown, { name }: { name?: string }) => `Hello ${name ?? 'world'}`);
  resolve(query, 'context', (_: unknown, __: unknown, context: unknown) => JSON.stringify(context));
  resolve(query, 'fails', () => {
    throw new GraphQLError('on purpose');
  });
  resolve(query, 'crashes', () => {
    throw new Error('secret detail');
  });
  resolve(query, 'pending', () => pending);
  resolve(query, 'deep', () => ({}));
  resolve(query, 'big', (_: unknown, { bytes }: { bytes: number }) => 'x'.repeat(bytes));
  const mutation = schema.getMutationType()?.getFields() ?? {};
  resolve(mutation, 'set', (_: unknown, { value }: { value: string }) => value);
  resolve(mutation, 'hold', (_: unknown, __: unknown, ___: unknown, info: WithSignal) => {
    live.signal = info.getAbortSignal?.();
    return pending;
  });
  const subscription = schema.getSubscriptionType()?.getFields() ?? {};
  const subscribe = (name: string, subscriber: (...args: never[]) => unknown): void => {
    (subscription[name] as { subscribe?: unknown }).subscribe = (...args: never[]) => {
      called(`subscribe ${name}`);
      return subscriber(...args);
    };
    resolve(subscription, name, (value: unknown) => {
      if (value instanceof Error) throw value;
      return value;
    });
  };
  type Topic = { topic: string };
  subscribe('events', (_: unknown, { topic }: Topic) => source(live, bus, topic));
  subscribe('count', async function* (_: unknown, { to }: { to: number }) {
    live.open++;
    try {
      for (let i = 1; i <= to; i++) yield i;
    } finally {
      live.open--;
    }
  });
  subscribe('refused', () => {
    throw new GraphQLError('not for you');
  });
  subscribe('broken', () => {
    throw new Error('secret detail');
  });
  subscribe('late', async (_: unknown, { topic }: Topic) => {
    await pending;
    return source(live, bus, topic);
  });
  subscribe('sensitive', async function* (_: unknown, { topic }: Topic) {
    live.open++;
    try {
      for await (const [value] of on(bus, topic)) yield value;
    } finally {
      live.open--;
    }
  });
  subscribe('blobs', async function* (_: unknown, { count, bytes }: { count: number; bytes: number }) {
    live.open++;
    try {
      for (let i = 0; i < count; i++) yield `${i} `.padEnd(bytes, 'x');
    } finally {
      live.open--;
    }
  });
  return { schema, live };
}
