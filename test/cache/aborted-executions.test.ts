/** @tags graphql engine */
import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { type ExecutionArgs, execute } from 'graphql';
import { graphqlHTTP } from '../../middleware/index.ts';
import { listen } from '../kit.ts';
import { until } from '../until.ts';
import { schemaOf } from './service.ts';

/** A client that may disconnect. */
interface Client {
  readonly body: Promise<string>;
  abort(): Promise<void>;
}

let clients: Client[];
/** Finish the executions, in the order in which they began. */
let finish: (() => void)[];
let operations: number;
let url: string;

beforeEach(async () => {
  clients = [];
  finish = [];
  operations = 0;
  const schema = schemaOf('type Query { slow: Int @cacheControl(maxAge: 60) }', {
    Query: { slow: () => new Promise((resolve) => finish.push(() => resolve(1))) },
  });
  const handler = graphqlHTTP(schema, {
    responseCache: true,
    onError: false,
    onOperation: () => void operations++,
    context: (request: IncomingMessage) => request,
    // Like graphql 17, it rejects when the client disconnects.
    engine: (args: ExecutionArgs) =>
      Promise.race([execute(args), once(args.contextValue as IncomingMessage, 'close').then(() => fail())]),
  });
  ({ url } = await listen(handler, '/?query={slow}'));
});

function fail(): never {
  throw new Error('aborted');
}

/** Sends the query. The next client comes after it. */
async function connect(): Promise<void> {
  const controller = new AbortController();
  const body = fetch(url, { signal: controller.signal }).then(
    (response) => response.text(),
    (error: Error) => error.name,
  );
  const count = operations;
  clients.push({
    body,
    async abort() {
      controller.abort();
      await body;
    },
  });
  await until(() => operations === count + 1);
  await new Promise(setImmediate);
}

const bodies = (): Promise<string[]> => Promise.all(clients.map(({ body }) => body));

const DATA = '{"data":{"slow":1}}';

it('one waiting request executes after each of several clients that disconnect during their execution', async () => {
  for (let count = 0; count < 8; count++) await connect();
  for (const index of [0, 1, 2]) {
    await until(() => finish.length === index + 1);
    await clients[index]?.abort();
  }
  await until(() => finish.length >= 4);
  await new Promise((resolve) => setTimeout(resolve, 50));
  for (const each of finish) each();
  expect(await bodies()).toEqual([...Array(3).fill('AbortError'), ...Array(5).fill(DATA)]);
  expect(finish).toHaveLength(4);
});

it('a waiting request whose client has disconnected does not execute for the others', async () => {
  for (let count = 0; count < 8; count++) await connect();
  for (const index of [1, 2, 0]) await clients[index]?.abort();
  await until(() => finish.length >= 2);
  await new Promise((resolve) => setTimeout(resolve, 50));
  for (const each of finish) each();
  expect(await bodies()).toEqual([...Array(3).fill('AbortError'), ...Array(5).fill(DATA)]);
  expect(finish).toHaveLength(2);
});
