/** @tags node graphql engine */
import { subscribe as listenTo, unsubscribe as stopListening } from 'node:diagnostics_channel';
import { buildSchema, parse, subscribe, validate, versionInfo } from 'graphql';
import { graphqlHTTP } from '../../middleware/graphql.ts';
import { attachSubscriptions } from '../../middleware/subscriptions.ts';
import { until } from '../until.ts';
import { listen, ready } from './client.ts';

// graphql 16 has no tracing channels, so espalier publishes nothing on them.
const V17 = versionInfo.major >= 17;
const QUERY = 'subscription Watch($from: Int) { ticks(from: $from) }';

async function* tick(from: number) {
  yield { ticks: from };
}

function createSchema() {
  const schema = buildSchema('type Query { a: Int } type Subscription { ticks(from: Int): Int }');
  const field = schema.getSubscriptionType()?.getFields()['ticks'];
  Object.assign(field as object, {
    subscribe(_source: unknown, { from }: { from: number }) {
      if (from < 0) throw new Error('on purpose');
      return tick(from);
    },
  });
  return schema;
}

/** Records the steps before the first event: the channel, the event, and the members of its context. */
async function record(run: () => unknown): Promise<readonly string[]> {
  const recorded: string[] = [];
  const listeners = ['parse', 'validate', 'subscribe'].flatMap((channel) =>
    ['start', 'end', 'asyncStart', 'asyncEnd', 'error'].map((event) => {
      const name = `tracing:graphql:${channel}:${event}`;
      const listener = (context: unknown): void =>
        void recorded.push(`${channel} ${event} ${Object.keys(context as object).sort()}`);
      listenTo(name, listener);
      return () => stopListening(name, listener);
    }),
  );
  try {
    await run();
  } finally {
    for (const stop of listeners) stop();
  }
  return recorded;
}

it.each([0, -1])(
  'a subscription over a socket publishes the same steps on the tracing channels as graphql-js (from %i)',
  async (from) => {
    const variables = { from };
    const schema = createSchema();
    const expected = await record(async () => {
      const document = parse(QUERY);
      validate(schema, document);
      await subscribe({ schema, document, variableValues: variables });
    });
    expect(expected.length > 0).toBe(V17);
    const { server, url } = await listen();
    const subscriptions = attachSubscriptions(server, graphqlHTTP(schema, { onError: false }));
    const client = await ready(url);
    const recorded = await record(async () => {
      client.send({ id: '1', type: 'subscribe', payload: { query: QUERY, variables } });
      await client.until(({ type }) => type === 'complete' || type === 'error');
    });
    expect(recorded).toEqual(expected);
    await client.close();
    await subscriptions.close();
    server.close();
    await until(() => !server.listening);
  },
);
