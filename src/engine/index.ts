import {
  defaultFieldResolver,
  defaultTypeResolver,
  type FragmentDefinitionNode,
  type GraphQLFieldResolver,
  type GraphQLTypeResolver,
  Kind,
} from 'graphql';
import { graphqlJs, outcomeFromResult } from '../execution/graphql-js.ts';
import { V17 } from '../execution/graphql-version.ts';
import type { Engine, EngineSettings, ValidatedOperation } from '../execution/types.ts';
import { isTraced, needsGraphqlJs } from './delegate.ts';
import { type BufferPool, createPool } from './pool.ts';
import type { Program } from './program.ts';
import { compileVariables } from './variables.ts';
import { compileVariants } from './variants.ts';

/** One pool for all operations of a core. */
const pools = new WeakMap<EngineSettings, BufferPool>();

/**
 * The compiled engine: an operation becomes closures that resolve its fields and write JSON bytes. It answers what
 * graphql-js would answer; what it does not do itself (see delegate.ts) graphql-js does.
 */
export const compiled: Engine = (operation, settings) => {
  const reference = graphqlJs(operation, settings);
  if (needsGraphqlJs(operation.schema, operation.document, operation.operation)) return reference;
  const program = programOf(operation, settings);
  const variantOf = compileVariants(program, operation.document);
  return (inputs) => {
    if (V17 && isTraced()) return reference(inputs);
    const run = variantOf(inputs.variableValues);
    if (run === undefined) return reference(inputs);
    const coerced = program.coerceVariables(inputs.variableValues);
    if ('errors' in coerced) return outcomeFromResult(coerced, settings);
    return run(inputs, coerced.variables, coerced.values);
  };
};

function programOf(operation: ValidatedOperation, settings: EngineSettings): Program {
  const { schema, document } = operation;
  const fragments: Record<string, FragmentDefinitionNode> = Object.create(null);
  for (const definition of document.definitions) {
    if (definition.kind === Kind.FRAGMENT_DEFINITION) fragments[definition.name.value] = definition;
  }
  const rootType = schema.getRootType(operation.operation.operation);
  if (rootType === undefined || rootType === null) throw new TypeError('the schema has no such root type');
  return {
    schema,
    operation: operation.operation,
    rootType,
    rootSelectionSet: operation.operation.selectionSet,
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
    pool: poolOf(settings),
    coerceVariables: compileVariables(schema, operation.operation, settings),
    expected: 0,
  };
}

function unlessDefault<T>(resolver: T | undefined, standard: T): T | undefined {
  return resolver === standard ? undefined : resolver;
}

function poolOf(settings: EngineSettings): BufferPool {
  let pool = pools.get(settings);
  if (pool === undefined) {
    pool = createPool();
    pools.set(settings, pool);
  }
  return pool;
}
