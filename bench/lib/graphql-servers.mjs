/** Creates the contestants of a topic whose servers all have the same schema. */
export function graphqlServers(makeSchema) {
  const onExpress = async (mount) => {
    const { default: express } = await import('express');
    const app = express();
    await mount(app, await makeSchema(), express);
    return app;
  };

  return {
    onExpress,
    espalier: (options) => async () => {
      const { graphqlHTTP } = await import('espalier');
      return graphqlHTTP(await makeSchema(), options);
    },
    espalierOnExpress: (options) => () =>
      onExpress(async (app, schema) => {
        const { graphqlHTTP } = await import('espalier');
        app.use('/graphql', graphqlHTTP(schema, options));
      }),
    mercurius: (options) => async () => {
      const { default: fastify } = await import('fastify');
      const { default: plugin } = await import('mercurius');
      const app = fastify();
      app.register(plugin, { schema: await makeSchema(), ...options });
      await app.listen({ port: 0, host: '127.0.0.1' });
      return app.server;
    },
    others: {
      'graphql-http (Express)': () =>
        onExpress(async (app, schema) => {
          const { createHandler } = await import('graphql-http/lib/use/express');
          app.all('/graphql', createHandler({ schema }));
        }),
      'Yoga (Express)': () =>
        onExpress(async (app, schema) => {
          const { createYoga } = await import('graphql-yoga');
          const yoga = createYoga({ schema, logging: false });
          app.use(yoga.graphqlEndpoint, yoga);
        }),
      'Apollo Server (Express)': () =>
        onExpress(async (app, schema, express) => {
          const { ApolloServer } = await import('@apollo/server');
          const { expressMiddleware } = await import('@as-integrations/express5');
          const server = new ApolloServer({ schema });
          await server.start();
          app.use('/graphql', express.json(), expressMiddleware(server));
        }),
    },
  };
}
