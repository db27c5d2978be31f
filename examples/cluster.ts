// Two processes on one port, connected by Redis: `REDIS_URL=redis://127.0.0.1 npx tsx examples/cluster.ts`.
import cluster from 'node:cluster';
import { attachSubscriptions, graphqlHTTP } from 'espalier';
import { createPubSub } from 'espalier/pubsub';
import express from 'express';
import { buildSchema } from 'graphql';

if (cluster.isPrimary) {
  const workers = [cluster.fork(), cluster.fork()];
  cluster.once('listening', (_worker, { port }) => console.log(`http://localhost:${port}/graphql`));
  process.once('SIGTERM', () => workers.forEach((worker) => void worker.process.kill('SIGTERM')));
} else {
  const events = createPubSub<{ news: { news: string } }>({ transport: process.env.REDIS_URL });
  const rootValue = {
    worker: process.pid,
    send: (event: { news: string }) => events.publish('news', event).then(() => process.pid),
    news: () => events.subscribe('news'),
  };
  const types = 'type Query { worker: Int } type Mutation { send(news: String!): Int }';
  const graphql = graphqlHTTP(buildSchema(`${types} type Subscription { news: String }`), { rootValue });
  const app = express().use('/graphql', graphql);
  const server = app.listen(Number(process.env.PORT ?? 3000));
  const sockets = attachSubscriptions(server, graphql);
  process.once('SIGTERM', async () => {
    server.close();
    await sockets.close({ drain: 1000 });
    await events.close().catch(console.error);
    process.disconnect();
  });
}
