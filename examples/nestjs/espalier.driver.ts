import { Inject } from '@nestjs/common';
import { AbstractGraphQLDriver, type GqlModuleOptions, GraphQLFederationFactory } from '@nestjs/graphql';
import {
  attachSubscriptions,
  type GraphQLOptions,
  graphqlHTTP,
  type SubscriptionOptions,
  type Subscriptions,
} from 'espalier';
import type { GraphQLSchema } from 'graphql';

/** What `GraphQLModule.forRoot` takes with this driver. */
export type EspalierOptions = GqlModuleOptions & {
  /** The options of `graphqlHTTP`. */
  espalier?: Omit<GraphQLOptions, 'context'>;
  /** The options of `attachSubscriptions`. */
  subscriptions?: Omit<SubscriptionOptions, 'path' | 'context'>;
};

/** Serves the schema of Nest over HTTP and WebSockets; with `autoSchemaFile: { federation: 2 }`, a subgraph. */
export class EspalierDriver extends AbstractGraphQLDriver<EspalierOptions> {
  @Inject(GraphQLFederationFactory)
  private readonly federation!: GraphQLFederationFactory;
  #subscriptions: Subscriptions | undefined;

  override generateSchema(options: EspalierOptions): Promise<GraphQLSchema> | null {
    const { autoSchemaFile } = options;
    const isSubgraph = typeof autoSchemaFile === 'object' && autoSchemaFile.federation !== undefined;
    return isSubgraph ? this.federation.generateSchema(options) : super.generateSchema(options);
  }

  async start(options: EspalierOptions): Promise<void> {
    const { schema, path = '/graphql', espalier, subscriptions } = options;
    if (schema === undefined) throw new Error('GraphQLModule has no schema: add a resolver with a query');
    const graphql = graphqlHTTP(schema, {
      // Over a socket, `req` is the WebSocket, which has the headers of its upgrade request.
      context: options.context ?? ((req, { caller }) => ({ req, caller })),
      ...espalier,
    });
    const adapter = this.httpAdapterHost.httpAdapter;
    adapter.use(path, graphql);
    this.#subscriptions = attachSubscriptions(adapter.getHttpServer(), graphql, { ...subscriptions, path });
  }

  async stop(): Promise<void> {
    await this.#subscriptions?.close();
  }
}
