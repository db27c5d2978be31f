import {
  type DocumentNode,
  defaultFieldResolver,
  defaultTypeResolver,
  type FragmentDefinitionNode,
  type GraphQLFieldResolver,
  type GraphQLTypeResolver,
  Kind,
} from 'graphql';
import { graphqlJs, outcomeFromResult } from '../execution/graphql-js.ts';
import { V17 } from '../execution/graphql-version.ts';
import type { Engine, EngineSettings, MemoryAccount, ValidatedOperation } from '../execution/types.ts';
import { CompiledMemory } from './compile/compiled-memory.ts';
import { SharedFields } from './compile/shared-fields.ts';
import { type BufferPool, createBufferPool } from './json/buffer-pool.ts';
import { isTraced, needsGraphqlJs, warnIfExecuteIsWrapped } from './operation/delegation.ts';
import { type CoerceVariables, compileVariables } from './operation/variables.ts';
import { Variants } from './operation/variants.ts';
import type { Program } from './run/program.ts';
import { SchemaSnapshot } from './run/schema-snapshot.ts';

/** The pools by settings: all operations of one handler share a pool. */
const pools = new WeakMap<EngineSettings, BufferPool>();

/**
 * The compiled engine. It turns an operation into closures that resolve its fields and write JSON bytes. Responses equal
 * those of graphql-js, which executes the operations that the engine does not support (see operation/delegation.ts).
 */
export const compiled: Engine = (operation, settings, account) => {
  const reference = graphqlJs(operation, settings);
  if (needsGraphqlJs(operation.schema, operation.document, operation.operation)) return reference;
  warnIfExecuteIsWrapped();
  const program = createProgram(operation, settings);
  let form = compileForm(program, operation.document, account);
  return (inputs) => {
    if (V17 && isTraced()) return reference(inputs);
    if (!form.snapshot.isCurrent()) {
      form.memory.release();
      form = compileForm(program, operation.document, account);
    }
    const run = form.variants.select(inputs.variableValues);
    if (run === undefined) {
      if (form.memory.isExceeded) form.memory.release();
      return reference(inputs);
    }
    const coerced = form.coerceVariables(inputs.variableValues);
    if ('errors' in coerced) return outcomeFromResult(coerced, settings, inputs);
    return run(inputs, coerced.variables, coerced.values);
  };
};

/** The compiled form of an operation. It is valid as long as the functions of the schema stay the same. */
interface CompiledForm {
  readonly snapshot: SchemaSnapshot;
  readonly memory: CompiledMemory;
  readonly coerceVariables: CoerceVariables;
  readonly variants: Variants;
}

function compileForm(
  program: Program,
  document: DocumentNode,
  account: MemoryAccount | undefined,
): CompiledForm {
  const { schema, operation, settings } = program;
  const snapshot = new SchemaSnapshot();
  const memory = new CompiledMemory(account);
  return {
    snapshot,
    memory,
    coerceVariables: compileVariables(schema, operation, settings, snapshot),
    variants: new Variants(program, document, { leafFields: new SharedFields(), memory, snapshot }),
  };
}

function createProgram(
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
    pool: poolFor(settings),
    expectedBytes: 0,
  };
}

function unlessDefault<T>(resolver: T | undefined, standard: T): T | undefined {
  return resolver === standard ? undefined : resolver;
}

function poolFor(settings: EngineSettings): BufferPool {
  let pool = pools.get(settings);
  if (pool === undefined) {
    pool = createBufferPool();
    pools.set(settings, pool);
  }
  return pool;
}
