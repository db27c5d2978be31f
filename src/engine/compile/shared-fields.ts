import type { FieldNode, GraphQLObjectType } from 'graphql';
import type { FieldRun } from '../run/plan.ts';

/** The fields whose lists of nodes begin with the same nodes. */
interface Branch {
  run: FieldRun | undefined;
  next: Map<FieldNode, Branch> | undefined;
}

/** Compiled fields by object type and merged field nodes: a fragment is compiled once, however often it is spread. */
export class SharedFields {
  readonly #byType = new Map<GraphQLObjectType, Branch>();

  get(type: GraphQLObjectType, nodes: readonly FieldNode[]): FieldRun | undefined {
    let branch = this.#byType.get(type);
    for (const node of nodes) branch = branch?.next?.get(node);
    return branch?.run;
  }

  set(type: GraphQLObjectType, nodes: readonly FieldNode[], run: FieldRun): void {
    let branch = getOrCreate(this.#byType, type);
    for (const node of nodes) {
      branch.next ??= new Map();
      branch = getOrCreate(branch.next, node);
    }
    branch.run = run;
  }
}

function getOrCreate<K>(branches: Map<K, Branch>, key: K): Branch {
  let branch = branches.get(key);
  if (branch === undefined) {
    branch = { run: undefined, next: undefined };
    branches.set(key, branch);
  }
  return branch;
}
