import { types } from 'node:util';
import {
  type FieldNode,
  type FragmentSpreadNode,
  type GraphQLDirective,
  type GraphQLError,
  type GraphQLObjectType,
  getDirectiveValues,
  type InlineFragmentNode,
  type OperationDefinitionNode,
  type SelectionSetNode,
} from 'graphql';
import { optionalExport } from '../execution/graphql-version.ts';
import {
  type ExecutionOutcome,
  type IncrementalFormat,
  isThenable,
  type RemainingResults,
} from '../execution/types.ts';
import { getOrCreate } from '../options/values.ts';
import {
  applies,
  type CollectContext,
  Compiler,
  isIncluded,
  programOfParts,
  type RootFields,
  type SharedPlans,
} from './compile.ts';
import { compileRoot, type ProgramRun } from './execute.ts';
import type { Execution, FieldRun, ObjectRun, Program } from './execution.ts';
import { runFields } from './fields.ts';
import { textOfFieldErrors } from './outcome.ts';
import {
  createPayloadText,
  DeferredOperation,
  type DeferUsage,
  type Found,
  Part,
  type PayloadText,
  RemainingPayloads,
} from './payloads.ts';
import { ignoreRejections } from './promises.ts';

/** Compiles one variant of an operation with `@defer`. */
class DeferredCompiler extends Compiler {
  readonly #grouping: Grouping;
  /** The usages of compiled fields, by the lists of their nodes. */
  readonly #fieldsOf = new WeakMap<readonly FieldNode[], readonly DeferredField[]>();
  #nextId = 0;

  constructor(program: Program, shared: SharedPlans, grouping: Grouping) {
    super(program, shared);
    this.#grouping = grouping;
  }

  override compileRoot(ex: Execution): RootFields {
    const { operation, rootType } = this.program;
    const selection = collectRootSelection(this.#context(rootType, ex), operation);
    const { before, fields, after } = this.#compileSelection(rootType, selection, []);
    return { fields: before === undefined ? fields : [before, ...fields], after };
  }

  protected override compileSubfields(
    type: GraphQLObjectType,
    nodes: readonly FieldNode[],
    ex: Execution,
  ): readonly FieldRun[] {
    const parents = this.#fieldsOf.get(nodes) ?? [];
    const selection = collectSubselection(this.#context(type, ex), parents);
    const usages = this.#grouping.usagesOf(parents);
    const { before, fields, after } = this.#compileSelection(type, selection, usages);
    return [before, ...fields, after].filter((run) => run !== undefined);
  }

  #context(type: GraphQLObjectType, { variables }: Execution): DeferredContext {
    const { schema, fragments } = this.program;
    return { schema, fragments, type, variables, createId: () => this.#nextId++ };
  }

  #compileSelection(
    type: GraphQLObjectType,
    { grouped, usages }: DeferredSelection,
    parents: readonly DeferUsage[],
  ): CompiledSelection {
    const { own, deferred } = this.#grouping.group(grouped, parents);
    const parts = deferred.map((group) => this.#compilePart(type, group));
    const hasUsages = usages.length > 0;
    return {
      before: hasUsages ? (ex, _, path) => ex.deferred?.openGroups(usages, path) : undefined,
      fields: this.#compileDeferred(type, own),
      after: hasUsages || parts.length > 0 ? registration(parts) : undefined,
    };
  }

  /** Compiles the function that adds a part for one object. The fields of the part are compiled when it is first executed. */
  #compilePart(type: GraphQLObjectType, { usages, fields }: FieldGroup): FieldRun {
    let runs: readonly FieldRun[] | undefined;
    const write: ObjectRun = (ex, source, path) => {
      runs ??= this.#compileDeferred(type, fields);
      runFields(ex, runs, source, path);
    };
    const names = [...fields.values()].map(([first]) => first?.node.name.value ?? '');
    return (ex, source, path) => {
      const { deferred } = ex;
      if (deferred === undefined) return;
      const groups = usages.map((usage) => deferred.groupOf(usage, path));
      deferred.parts.push(new Part(groups, path, source, write));
      handleRejections(ex, source, names);
    };
  }

  #compileDeferred(type: GraphQLObjectType, grouped: DeferredFields): readonly FieldRun[] {
    const runs: FieldRun[] = [];
    for (const [key, fields] of grouped) {
      const nodes = fields.map(({ node }) => node);
      this.#fieldsOf.set(nodes, fields);
      const run = this.compileField(type, { key, nodes, identity: identityOf(fields) });
      if (run !== undefined) runs.push(run);
    }
    this.shared.memory.addSelectionSet(runs.length);
    return runs;
  }
}

/**
 * The fields of an object that are executed with it. `before` creates the groups of its usages, and `after`
 * registers them with their parts; both write nothing.
 */
interface CompiledSelection {
  readonly before: FieldRun | undefined;
  readonly fields: readonly FieldRun[];
  readonly after: FieldRun | undefined;
}

function registration(parts: readonly FieldRun[]): FieldRun {
  return (ex, source, path) => {
    ex.deferred?.registerGroups(path);
    for (const add of parts) add(ex, source, path);
  };
}

/** Promises in properties may reject before their part is executed. */
function handleRejections(ex: Execution, source: unknown, names: readonly string[]): void {
  if (typeof source !== 'object' || source === null || types.isProxy(source)) return;
  for (const name of names) {
    ignoreRejections(ex, Object.getOwnPropertyDescriptor(source, name)?.value);
  }
}

/** The parts of a selection set below depend on the usages of the fields. */
function identityOf(fields: readonly DeferredField[]): readonly object[] {
  return fields.flatMap(({ node, usage }) => (usage === undefined ? [node] : [node, usage]));
}

/** A field with the innermost `@defer` around it. */
interface DeferredField {
  readonly node: FieldNode;
  readonly usage: DeferUsage | undefined;
}

type DeferredFields = ReadonlyMap<string, readonly DeferredField[]>;

/** The fields of a selection set by response key, and the usages of `@defer` in it. */
interface DeferredSelection {
  readonly grouped: DeferredFields;
  readonly usages: readonly DeferUsage[];
}

/** The inputs of collecting. `createId` numbers the usages of an operation. */
interface DeferredContext extends CollectContext {
  readonly type: GraphQLObjectType;
  readonly variables: Record<string, unknown>;
  readonly createId: () => number;
}

interface Collection extends DeferredContext {
  /** By fragment: the usages that it was visited for. Undefined in it stands for a visit outside of usages. */
  readonly visited: Map<string, Set<object | undefined>>;
  readonly grouped: Map<string, DeferredField[]>;
  readonly usages: DeferUsage[];
}

/** Only graphql 17 has the directive. */
const DEFER = optionalExport('GraphQLDeferDirective') as GraphQLDirective;

/** Collects the fields of an operation with their usages of `@defer`. */
function collectRootSelection(
  context: DeferredContext,
  operation: OperationDefinitionNode,
): DeferredSelection {
  const collection = createCollection(context);
  visit(collection, operation.selectionSet, undefined);
  return collection;
}

/** Collects the merged selection sets of some fields with their usages of `@defer`. */
function collectSubselection(context: DeferredContext, fields: readonly DeferredField[]): DeferredSelection {
  const collection = createCollection(context);
  for (const { node, usage } of fields) {
    if (node.selectionSet !== undefined) visit(collection, node.selectionSet, usage);
  }
  return collection;
}

function createCollection(context: DeferredContext): Collection {
  return { ...context, visited: new Map(), grouped: new Map(), usages: [] };
}

function visit(collection: Collection, set: SelectionSetNode, usage: DeferUsage | undefined): void {
  for (const selection of set.selections) {
    if (!isIncluded(selection, collection.variables)) continue;
    if (selection.kind === 'Field') addField(collection, selection, usage);
    else if (selection.kind === 'FragmentSpread') visitSpread(collection, selection, usage);
    else if (applies(collection, selection)) {
      const created = usageOf(collection, selection, usage);
      if (created !== undefined) collection.usages.push(created);
      visit(collection, selection.selectionSet, created ?? usage);
    }
  }
}

function addField({ grouped }: Collection, node: FieldNode, usage: DeferUsage | undefined): void {
  const key = (node.alias ?? node.name).value;
  const fields = grouped.get(key);
  if (fields === undefined) grouped.set(key, [{ node, usage }]);
  else fields.push({ node, usage });
}

/** Visits a fragment once outside of usages, or once for each usage. */
function visitSpread(
  collection: Collection,
  spread: FragmentSpreadNode,
  enclosing: DeferUsage | undefined,
): void {
  const fragment = collection.fragments[spread.name.value];
  if (fragment === undefined || !applies(collection, fragment)) return;
  const created = usageOf(collection, spread, enclosing);
  const usage = created ?? enclosing;
  const visited = getOrCreate(collection.visited, spread.name.value, () => new Set());
  if (visited.has(undefined) || visited.has(usage?.directive)) return;
  visited.add(usage?.directive);
  if (created !== undefined) collection.usages.push(created);
  visit(collection, fragment.selectionSet, usage);
}

function usageOf(
  { variables, usages, createId }: Collection,
  node: InlineFragmentNode | FragmentSpreadNode,
  parent: DeferUsage | undefined,
): DeferUsage | undefined {
  const directive = node.directives?.find(({ name }) => name.value === DEFER.name);
  if (directive === undefined) return undefined;
  const values = getDirectiveValues(DEFER, node, variables);
  if (values?.['if'] === false) return undefined;
  const label = values?.['label'];
  return {
    id: createId(),
    index: usages.length,
    label: typeof label === 'string' ? label : undefined,
    directive,
    parent,
  };
}

/** Fields that are deferred for the same usages, and executed together. */
interface FieldGroup {
  readonly usages: readonly DeferUsage[];
  readonly fields: DeferredFields;
}

/** The fields of a selection set by the time of their execution. */
interface GroupedFields {
  readonly own: DeferredFields;
  readonly deferred: readonly FieldGroup[];
}

/** Decides when fields are executed. The two formats of payloads differ in it. */
interface Grouping {
  /** Returns the usages of the part that executes a field; none for the first payload. */
  usagesOf(fields: readonly DeferredField[]): readonly DeferUsage[];
  /** Groups the fields of an object; `usages` are those of the part that executes the object. */
  group(grouped: DeferredFields, usages: readonly DeferUsage[]): GroupedFields;
}

const NONE: readonly DeferUsage[] = [];

class Groups {
  readonly #own = new Map<string, DeferredField[]>();
  readonly #deferred = new Map<
    string,
    { usages: readonly DeferUsage[]; fields: Map<string, DeferredField[]> }
  >();
  readonly #ownKey: string;

  constructor(usages: readonly DeferUsage[]) {
    this.#ownKey = keyOf(usages);
  }

  add(key: string, usages: readonly DeferUsage[], fields: readonly DeferredField[]): void {
    const target = this.#fieldsFor(usages);
    const known = target.get(key);
    if (known === undefined) target.set(key, [...fields]);
    else known.push(...fields);
  }

  #fieldsFor(usages: readonly DeferUsage[]): Map<string, DeferredField[]> {
    const key = keyOf(usages);
    if (key === this.#ownKey) return this.#own;
    const group = getOrCreate(this.#deferred, key, () => ({ usages, fields: new Map() }));
    return group.fields;
  }

  result(): GroupedFields {
    return { own: this.#own, deferred: [...this.#deferred.values()] };
  }
}

/** Two lists of the same usages have the same key in any order. */
function keyOf(usages: readonly DeferUsage[]): string {
  if (usages.length === 1) return String(usages[0]?.id);
  const ids = usages.map(({ id }) => id);
  return ids.sort((a, b) => a - b).join();
}

/**
 * The format since 2024: a field that several usages share is executed once, for all of them. A field that is
 * also selected outside of usages is not deferred.
 */
const SHARED_FIELDS: Grouping = {
  usagesOf(fields) {
    const usages = new Set<DeferUsage>();
    for (const { usage } of fields) {
      if (usage === undefined) return NONE;
      usages.add(usage);
    }
    for (const usage of usages) if (hasParentIn(usages, usage)) usages.delete(usage);
    return [...usages];
  },
  group(grouped, usages) {
    const groups = new Groups(usages);
    for (const [key, fields] of grouped) groups.add(key, SHARED_FIELDS.usagesOf(fields), fields);
    return groups.result();
  },
};

/** The parts of an enclosing usage are delivered first, so the field is not needed again. */
function hasParentIn(usages: ReadonlySet<DeferUsage>, usage: DeferUsage): boolean {
  for (let at = usage.parent; at !== undefined; at = at.parent) if (usages.has(at)) return true;
  return false;
}

/** The format of 2022: each usage executes its own fields. */
const REPEATED_FIELDS: Grouping = {
  usagesOf: ([first]) => (first?.usage === undefined ? NONE : [first.usage]),
  group(grouped, usages) {
    const groups = new Groups(usages);
    for (const [key, fields] of grouped) {
      for (const field of fields) groups.add(key, field.usage === undefined ? NONE : [field.usage], [field]);
    }
    return groups.result();
  },
};

const GROUPINGS: Readonly<Record<IncrementalFormat, Grouping>> = {
  'v0.2': SHARED_FIELDS,
  20220824: REPEATED_FIELDS,
};

/** Compiles one variant of an operation with `@defer`. */
export function compileIncrementally(
  program: Program,
  shared: SharedPlans,
  format: IncrementalFormat,
): ProgramRun {
  const run = compileRoot(new DeferredCompiler(program, shared, GROUPINGS[format]));
  const partProgram = programOfParts(program);
  return (inputs, variables, values) => {
    const operation = new DeferredOperation(partProgram, inputs, { variables, values });
    const ex = operation.createExecution(program);
    const found = ex.deferred as Found;
    const nulledPaths: NonNullable<Execution['nulledPaths']> = new Set();
    ex.nulledPaths = nulledPaths;
    const finish = (outcome: ExecutionOutcome): ExecutionOutcome => {
      if (operation.removeNulled(found, nulledPaths)) {
        const text = createPayloadText(format, (errors) => textOfFieldErrors(errors, { program, inputs }));
        return beginPayloads(outcome, operation, found, text);
      }
      operation.finish();
      return outcome;
    };
    const outcome = run(ex);
    if (!isThenable(outcome)) return finish(outcome);
    return outcome.then(finish, (error) => {
      operation.finish(error);
      throw error;
    });
  };
}

function beginPayloads(
  outcome: ExecutionOutcome,
  operation: DeferredOperation,
  found: Found,
  text: PayloadText,
): ExecutionOutcome {
  const rest = new RemainingPayloads(operation, text);
  return new FirstPayload(outcome, rest.begin(found), rest);
}

/** The outcome of the fields that are not deferred, with the members that announce the others. */
class FirstPayload implements ExecutionOutcome {
  readonly kind: ExecutionOutcome['kind'];
  readonly body: Buffer;
  readonly isMasked: boolean;
  readonly rest: RemainingResults;
  readonly #outcome: ExecutionOutcome;

  constructor(outcome: ExecutionOutcome, members: string, rest: RemainingResults) {
    const body = outcome.body as Buffer;
    this.kind = outcome.kind;
    this.body = Buffer.concat([body.subarray(0, -1), Buffer.from(`${members}}`)]);
    this.isMasked = outcome.isMasked === true;
    this.rest = rest;
    this.#outcome = outcome;
    outcome.release?.();
  }

  /** Some outcomes create their errors when they are read. */
  get errors(): readonly GraphQLError[] {
    return this.#outcome.errors;
  }
}
