import type {
  FragmentDefinitionNode,
  GraphQLFieldResolver,
  GraphQLObjectType,
  GraphQLSchema,
  GraphQLTypeResolver,
  OperationDefinitionNode,
} from 'graphql';
import type { EngineSettings } from '../../execution/types.ts';
import type { BufferPool } from '../json/buffer-pool.ts';

/** One operation of one document, with the data that its compilation and execution need. */
export interface Program {
  readonly schema: GraphQLSchema;
  readonly operation: OperationDefinitionNode;
  readonly rootType: GraphQLObjectType;
  readonly fragments: Readonly<Record<string, FragmentDefinitionNode>>;
  /** The `fieldResolver` option; undefined for graphql-js's default. */
  readonly fieldResolver: GraphQLFieldResolver<unknown, unknown> | undefined;
  /** The `typeResolver` option; undefined for graphql-js's default. */
  readonly typeResolver: GraphQLTypeResolver<unknown, unknown> | undefined;
  readonly settings: EngineSettings;
  readonly pool: BufferPool;
  /** The size of the last response, which decides the size of the next working buffer. */
  expectedBytes: number;
}
