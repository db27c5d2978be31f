import type {
  FragmentDefinitionNode,
  GraphQLFieldResolver,
  GraphQLObjectType,
  GraphQLSchema,
  GraphQLTypeResolver,
  OperationDefinitionNode,
  SelectionSetNode,
} from 'graphql';
import type { MaybePromise } from '../../types/connect.ts';
import type { EngineSettings, ExecutionInputs, ExecutionOutcome } from '../execution/types.ts';
import type { BufferPool } from './pool.ts';
import type { CoerceVariables } from './variables.ts';

/** One operation of one document, ready to be compiled and run. */
export interface Program {
  readonly schema: GraphQLSchema;
  readonly operation: OperationDefinitionNode;
  readonly rootType: GraphQLObjectType;
  readonly rootSelectionSet: SelectionSetNode;
  readonly fragments: Readonly<Record<string, FragmentDefinitionNode>>;
  readonly fieldResolver: GraphQLFieldResolver<unknown, unknown> | undefined;
  readonly typeResolver: GraphQLTypeResolver<unknown, unknown> | undefined;
  readonly settings: EngineSettings;
  readonly pool: BufferPool;
  readonly coerceVariables: CoerceVariables;
  /** Bytes of the last answer: the next one is expected to be about as long. */
  expected: number;
}

/** Runs a program whose selection is settled. */
export type ProgramRun = (
  inputs: ExecutionInputs,
  variables: Record<string, unknown>,
  values: Record<string, unknown>,
) => MaybePromise<ExecutionOutcome>;
