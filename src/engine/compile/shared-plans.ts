import type { GraphQLObjectType } from 'graphql';
import type { MemoryAccount } from '../../execution/engine.ts';
import type { FieldRun } from '../run/plan.ts';
import type { SchemaSnapshot } from '../run/schema-functions.ts';

/** The state that the compiled variants of one program share. */
export interface SharedPlans {
  /** Fields without a selection set, which are the same in every variant. */
  readonly leafFields: SharedFields;
  readonly memory: CompiledMemory;
  readonly snapshot: SchemaSnapshot;
}

/** The fields whose lists of nodes begin with the same nodes. */
interface Branch {
  run: FieldRun | undefined;
  next: Map<object, Branch> | undefined;
}

/**
 * Compiled fields by object type and merged field nodes (with their usages of `@defer`): a fragment is
 * compiled once, however often it is spread.
 */
export class SharedFields {
  readonly #byType = new Map<GraphQLObjectType, Branch>();

  get(type: GraphQLObjectType, nodes: readonly object[]): FieldRun | undefined {
    let branch = this.#byType.get(type);
    for (const node of nodes) branch = branch?.next?.get(node);
    return branch?.run;
  }

  set(type: GraphQLObjectType, nodes: readonly object[], run: FieldRun): void {
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

/**
 * Measured on Node 22: the bytes that a compiled field and a compiled selection set retain, without document
 * nodes.
 */
const FIELD_BYTES = 1300;
const SELECTION_SET_BYTES = 300;
const REFERENCE_BYTES = 8;

/** Charges the compiled form of one operation to its account. */
export class CompiledMemory {
  /** The account has refused a charge, so the operation has to release its compiled form. */
  isExceeded = false;
  /** Bytes added since the last charge. */
  #bytes = 0;
  #charged = 0;
  readonly #account: MemoryAccount | undefined;

  constructor(account: MemoryAccount | undefined) {
    this.#account = account;
  }

  addField(): void {
    this.#bytes += FIELD_BYTES;
  }

  /** Charges a selection set together with the fields that were added for it. */
  addSelectionSet(fields: number): void {
    const bytes = this.#bytes + SELECTION_SET_BYTES + fields * REFERENCE_BYTES;
    this.#bytes = 0;
    this.#charged += bytes;
    if (this.#account?.charge(bytes) === false) this.isExceeded = true;
  }

  /** Returns all charged bytes to the account. */
  release(): void {
    if (this.#charged === 0) return;
    this.#account?.charge(-this.#charged);
    this.#charged = 0;
  }
}
