// Run by processes.test.ts: a server whose mutations write a row into PostgreSQL each time they are executed.
import { once } from 'node:events';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { buildSchema } from 'graphql';
import { Redis } from 'ioredis';
import pg from 'pg';
import { graphqlHTTP } from '../../middleware/graphql.ts';
import { attachSubscriptions } from '../../middleware/subscriptions.ts';
import { TIMES } from '../../src/idempotency/mutations.ts';

const [redisUrl = '', postgresUrl = '', lease = ''] = process.argv.slice(2);
TIMES.lease = Number(lease);
const store = new Redis(redisUrl);
store.on('error', () => undefined);
const pool = new pg.Pool({ connectionString: postgresUrl, max: 10 });

const schema = buildSchema(`
  type Query { one: Int }
  type Mutation { pay(op: String!, hangs: Boolean): String! }
`);
const pay = async ({ op, hangs }: { readonly op: string; readonly hangs?: boolean }): Promise<string> => {
  const { rows } = await pool.query('INSERT INTO effects (op) VALUES ($1) RETURNING id', [op]);
  await pool.query('SELECT pg_sleep($1)', [hangs === true ? 3600 : 0.05]);
  return `${op} ${rows[0].id}`;
};
const handler = graphqlHTTP(schema, {
  rootValue: { pay },
  onError: false,
  caller: () => ({ id: 'user' }),
  idempotency: { redis: store, required: true },
});
const server = http.createServer(handler);
attachSubscriptions(server, handler, { path: '/graphql' });
server.listen(0, '127.0.0.1');
await once(server, 'listening');
process.send?.((server.address() as AddressInfo).port);
process.once('disconnect', () => process.exit());
