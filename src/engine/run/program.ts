import {
  defaultFieldResolver,
  defaultTypeResolver,
  type FragmentDefinitionNode,
  type GraphQLFieldResolver,
  type GraphQLObjectType,
  type GraphQLSchema,
  type GraphQLTypeResolver,
  Kind,
  type OperationDefinitionNode,
} from 'graphql';
import type { EngineSettings } from '../../execution/engine.ts';
import type { ValidatedOperation } from '../../execution/types.ts';
import { type BufferPool, createBufferPool } from '../json/buffer.ts';
import { RepeatedOutcome } from './repeated-outcome.ts';

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
  /** Calls of resolvers are published on graphql 17's tracing channel (see execution/tracing.ts). */
  readonly tracesResolvers: boolean;
  readonly pool: BufferPool;
  /** The size of the last response, which decides the size of the next working buffer. */
  expectedBytes: number;
  /** The last result of a subscription; undefined for other operations. */
  readonly repeated: RepeatedOutcome | undefined;
}

type Pools = WeakMap<EngineSettings, BufferPool>;

/** The pools by settings: all operations of one handler share a pool. */
const pools: Pools = new WeakMap();

/** The pools for deferred parts. They are smaller than responses, and many of them may wait at a time. */
const partPools: Pools = new WeakMap();
const PART_SIZE = 512;

/** Prepares an operation for compilation. */
export function createProgram(
  { schema, document, operation }: ValidatedOperation,
  settings: EngineSettings,
): Program {
  const fragments: Record<string, FragmentDefinitionNode> = Object.create(null);
  for (const definition of document.definitions) {
    if (definition.kind === Kind.FRAGMENT_DEFINITION) fragments[definition.name.value] = definition;
  }
  const rootType = schema.getRootType(operation.operation);
  if (rootType === undefined || rootType === null) {
    throw new TypeError(`The schema has no root type for a ${operation.operation}`);
  }
  return {
    schema,
    operation,
    rootType,
    fragments,
    fieldResolver: unlessDefault(
      settings.fieldResolver as GraphQLFieldResolver<unknown, unknown> | undefined,
      defaultFieldResolver,
    ),
    typeResolver: unlessDefault(
      settings.typeResolver as GraphQLTypeResolver<unknown, unknown> | undefined,
      defaultTypeResolver,
    ),
    settings,
    tracesResolvers: false,
    pool: poolFor(settings),
    expectedBytes: 0,
    repeated: operation.operation === 'subscription' ? new RepeatedOutcome() : undefined,
  };
}

function unlessDefault<T>(resolver: T | undefined, standard: T): T | undefined {
  return resolver === standard ? undefined : resolver;
}

function poolFor(settings: EngineSettings): BufferPool {
  return getOrCreate(pools, settings, createBufferPool);
}

/** Returns the program of the deferred parts of an operation. */
export function programOfParts(program: Program): Program {
  const pool = getOrCreate(partPools, program.settings, () => createBufferPool(PART_SIZE));
  return { ...program, pool, expectedBytes: 0 };
}

function getOrCreate(byKey: Pools, settings: EngineSettings, create: () => BufferPool): BufferPool {
  let pool = byKey.get(settings);
  if (pool === undefined) {
    pool = create();
    byKey.set(settings, pool);
  }
  return pool;
}
