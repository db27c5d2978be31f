/** @tags node graphql */
import type { RequestListener } from 'node:http';
import type express5 from 'express';
import { buildSchema } from 'graphql';
import { graphqlHTTP } from '../../middleware/graphql.ts';
import { attachSubscriptions } from '../../middleware/subscriptions.ts';
import { eachExpress } from '../express.ts';
import { handshake, listen } from './client.ts';

type Handler = ReturnType<typeof graphqlHTTP>;
type Mount = (express: typeof express5, handler: Handler) => { app: RequestListener; path: string };

/** The ways to mount the handler, each with the path of `attachSubscriptions`. */
const mounts: Record<string, Mount> = {
  'app.use': (express, handler) => ({ app: express().use('/graphql', handler), path: '/graphql' }),
  'app.use with a trailing slash': (express, handler) => ({
    app: express().use('/graphql/', handler),
    path: '/graphql/',
  }),
  'app.use under strict routing': (express, handler) => ({
    app: express().enable('strict routing').use('/graphql', handler),
    path: '/graphql',
  }),
  'app.all': (express, handler) => ({ app: express().all('/graphql', handler), path: '/graphql' }),
  'app.all under strict routing': (express, handler) => ({
    app: express().enable('strict routing').all('/graphql', handler),
    path: '/graphql',
  }),
  'a router below a prefix': (express, handler) => ({
    app: express().use('/api', express.Router({ strict: true }).use('/graphql', handler)),
    path: '/api/graphql',
  }),
  'the root': (express, handler) => ({ app: express().use(handler), path: '/' }),
};

eachExpress((express) => {
  it.each(Object.entries(mounts))(
    'attachSubscriptions accepts each spelling of the path that Express accepts with %s',
    async (_, mount) => {
      const handler = graphqlHTTP(buildSchema('type Query { a: Int }'), { graphiql: false });
      const { app, path } = mount(express, handler);
      const { server, port } = await listen(app);
      const subscriptions = attachSubscriptions(server, handler, { path });
      const bare = path.replace(/\/$/, '');
      const spellings = [bare, `${bare}/`, `${bare}?a=1`, `${bare}/?a=1`].filter((each) =>
        each.startsWith('/'),
      );
      const accepted: string[] = [];
      for (const spelling of spellings) {
        const query = `${spelling.includes('?') ? '&' : '?'}query={a}`;
        const { status } = await fetch(`http://127.0.0.1:${port}${spelling}${query}`);
        if (status !== 200) continue;
        accepted.push(spelling);
        expect([spelling, (await handshake(port, spelling)).status]).toEqual([spelling, 101]);
      }
      expect(accepted.length).toBeGreaterThanOrEqual(2);
      // The handler at the root serves every path over HTTP.
      const others = bare === '' ? ['/below'] : [`${bare}/below`, `${bare}//`, `${bare}x`];
      for (const other of others) {
        expect([other, (await handshake(port, other)).status]).toEqual([other, 404]);
      }
      await subscriptions.close();
      server.close();
      server.closeAllConnections();
    },
  );
});
