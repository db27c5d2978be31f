import type { FieldNode, GraphQLObjectType } from 'graphql';
import type { ObjectRun } from '../run/plan.ts';
import type { Program } from '../run/program.ts';
import type { SchemaSnapshot } from '../run/schema-snapshot.ts';

/**
 * Breaks the cycle between the folders: completing an object value executes a selection set, whose fields
 * complete values. `complete/` calls back into `compile/` through this interface instead of importing it.
 */
export interface Compiler {
  readonly program: Program;
  readonly snapshot: SchemaSnapshot;
  /** Compiles the merged selection sets of some field nodes for one object type. */
  compileSelectionSet(type: GraphQLObjectType, nodes: readonly FieldNode[]): ObjectRun;
}
