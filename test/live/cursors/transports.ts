import { until } from '../../until.ts';
import { connect, LEGACY, MODERN } from '../client.ts';
import { open } from '../serve-streams.ts';
import type { Served } from './serve.ts';

interface Result {
  readonly data?: Readonly<Record<string, number | null>> | null;
  readonly errors?: readonly { readonly extensions?: Readonly<Record<string, unknown>> }[];
  readonly extensions?: { readonly cursor?: string };
}

/** A subscription as a client sees it. */
export interface Subscriber {
  /** Waits for the next result. The errors that end a subscription are a result without data. */
  next(): Promise<Result>;
  /** The results that have arrived and were not read. */
  rest(): readonly Result[];
  close(): Promise<unknown>;
}

interface Request {
  readonly query: string;
  readonly variables?: Readonly<Record<string, unknown>>;
  readonly extensions?: Readonly<Record<string, unknown>>;
}

export type Subscribe = (
  served: Pick<Served, 'socketUrl' | 'url'>,
  request: Request,
  user?: string,
) => Promise<Subscriber>;

/** Creates a subscriber from a growing list of results. */
function subscriber(results: () => readonly Result[], close: () => Promise<unknown>): Subscriber {
  let taken = 0;
  return {
    async next() {
      await until(() => results().length > taken);
      return results()[taken++] as Result;
    },
    rest: () => results().slice(taken),
    close,
  };
}

const overSocket =
  (protocol: string): Subscribe =>
  async ({ socketUrl }, payload, user) => {
    const client = await connect(socketUrl, protocol);
    client.send({ type: 'connection_init', payload: { user } });
    await client.until(({ type }) => type === 'connection_ack');
    client.send({ id: '1', type: protocol === LEGACY ? 'start' : 'subscribe', payload });
    const results = (): Result[] =>
      client.received.flatMap(({ type, payload }) => {
        if (type === 'next' || type === 'data') return [payload as Result];
        return type === 'error' ? [{ errors: [payload].flat() } as Result] : [];
      });
    return subscriber(results, () => client.close());
  };

const userHeader = (user: string | undefined): Record<string, string> => (user === undefined ? {} : { user });

const overStream =
  (accept: string, results: (body: string) => Result[]): Subscribe =>
  async ({ url }, params, user) => {
    const reading = await open(url, { params, headers: { accept, ...userHeader(user) } });
    return subscriber(
      () => results(reading.body),
      async () => reading.req.destroy(),
    );
  };

/** The data of the events of a body. */
export const eventsOf = (body: string): Record<string, unknown>[] =>
  [...body.matchAll(/^data: (.+)$/gm)].map(([, json = '']) => JSON.parse(json));

/** The `id` lines of a body. */
export const idsOf = (body: string): string[] => [...body.matchAll(/^id: (.+)$/gm)].map(([, id = '']) => id);

const parts = (body: string): Result[] =>
  [...body.matchAll(/\{"payload":.*\}(?=\r\n--graphql)/g)].map(([json]) => JSON.parse(json).payload);

/** All transports by name. */
export const TRANSPORTS: Readonly<Record<string, Subscribe>> = {
  'graphql-transport-ws': overSocket(MODERN),
  'the legacy protocol graphql-ws': overSocket(LEGACY),
  'server-sent events': overStream('text/event-stream', eventsOf),
  'multipart subscriptions': overStream('multipart/mixed;subscriptionSpec=1.0', parts),
};
