import { types } from 'node:util';
import type { FieldNode, GraphQLObjectType } from 'graphql';
import { runFields } from '../compile/run-fields.ts';
import { type RootFields, sharedField } from '../compile/selection-set.ts';
import { SharedFields, type SharedPlans } from '../compile/shared-plans.ts';
import { DeferredPart, type DeferUsage } from '../run/deferred-parts.ts';
import type { Execution } from '../run/execution.ts';
import { ignoreRejections } from '../run/ignore-rejections.ts';
import type { Compiler, FieldRun, ObjectRun } from '../run/plan.ts';
import type { Program } from '../run/program.ts';
import {
  collectRootSelection,
  collectSubselection,
  type DeferredContext,
  type DeferredField,
  type DeferredFields,
  type DeferredSelection,
} from './collect-fields.ts';
import type { FieldGroup, Grouping } from './group-fields.ts';

/** Compiles the selection sets of an operation with `@defer`. */
interface DeferredCompiler extends Compiler {
  readonly shared: SharedPlans;
  readonly compositeFields: SharedFields;
  readonly grouping: Grouping;
  /** The usages of compiled fields, by the lists of their nodes. */
  readonly fieldsOf: WeakMap<readonly FieldNode[], readonly DeferredField[]>;
  readonly createId: () => number;
}

/** Creates the compiler of one variant of an operation. */
export function createDeferredCompiler(
  program: Program,
  shared: SharedPlans,
  grouping: Grouping,
): DeferredCompiler {
  let nextId = 0;
  const compiler: DeferredCompiler = {
    program,
    snapshot: shared.snapshot,
    shared,
    compositeFields: new SharedFields(),
    grouping,
    fieldsOf: new WeakMap(),
    createId: () => nextId++,
    compileSelectionSet: (type, nodes) => compileSelectionSet(compiler, type, nodes),
  };
  return compiler;
}

/** Compiles the fields of the operation. */
export function compileDeferredRoot(compiler: DeferredCompiler, ex: Execution): RootFields {
  const { operation, rootType } = compiler.program;
  const selection = collectRootSelection(contextOf(compiler, rootType, ex), operation);
  const { before, fields, after } = compileSelection(compiler, rootType, selection, []);
  return { fields: before === undefined ? fields : [before, ...fields], after };
}

function compileSelectionSet(
  compiler: DeferredCompiler,
  type: GraphQLObjectType,
  nodes: readonly FieldNode[],
): ObjectRun {
  let runs: FieldRun[] | undefined;
  return (ex, source, path) => {
    runs ??= compileSubselection(compiler, type, nodes, ex);
    runFields(ex, runs, source, path);
  };
}

function compileSubselection(
  compiler: DeferredCompiler,
  type: GraphQLObjectType,
  nodes: readonly FieldNode[],
  ex: Execution,
): FieldRun[] {
  const parents = compiler.fieldsOf.get(nodes) ?? [];
  const selection = collectSubselection(contextOf(compiler, type, ex), parents);
  const usages = compiler.grouping.usagesOf(parents);
  const { before, fields, after } = compileSelection(compiler, type, selection, usages);
  return [before, ...fields, after].filter((run) => run !== undefined);
}

function contextOf(
  { program, createId }: DeferredCompiler,
  type: GraphQLObjectType,
  { variables }: Execution,
): DeferredContext {
  return { schema: program.schema, fragments: program.fragments, type, variables, createId };
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

function compileSelection(
  compiler: DeferredCompiler,
  type: GraphQLObjectType,
  { grouped, usages }: DeferredSelection,
  parents: readonly DeferUsage[],
): CompiledSelection {
  const { own, deferred } = compiler.grouping.group(grouped, parents);
  const parts = deferred.map((group) => compilePart(compiler, type, group));
  const hasUsages = usages.length > 0;
  return {
    before: hasUsages ? (ex, _, path) => ex.deferred?.openGroups(usages, path) : undefined,
    fields: compileFields(compiler, type, own),
    after: hasUsages || parts.length > 0 ? registration(parts) : undefined,
  };
}

/** Adds a part for one object. */
type AddPart = FieldRun;

function registration(parts: readonly AddPart[]): FieldRun {
  return (ex, source, path) => {
    ex.deferred?.registerGroups(path);
    for (const add of parts) add(ex, source, path);
  };
}

/** The fields of a part are compiled when it is first executed. */
function compilePart(
  compiler: DeferredCompiler,
  type: GraphQLObjectType,
  { usages, fields }: FieldGroup,
): AddPart {
  let runs: readonly FieldRun[] | undefined;
  const write: ObjectRun = (ex, source, path) => {
    runs ??= compileFields(compiler, type, fields);
    runFields(ex, runs, source, path);
  };
  const names = [...fields.values()].map(([first]) => first?.node.name.value ?? '');
  return (ex, source, path) => {
    const { deferred } = ex;
    if (deferred === undefined) return;
    const groups = usages.map((usage) => deferred.groupOf(usage, path));
    deferred.parts.push(new DeferredPart(groups, path, source, write));
    handleRejections(ex, source, names);
  };
}

/** Promises in properties may reject before their part is executed. */
function handleRejections(ex: Execution, source: unknown, names: readonly string[]): void {
  if (typeof source !== 'object' || source === null || types.isProxy(source)) return;
  for (const name of names) {
    ignoreRejections(ex, Object.getOwnPropertyDescriptor(source, name)?.value);
  }
}

function compileFields(
  compiler: DeferredCompiler,
  type: GraphQLObjectType,
  grouped: DeferredFields,
): FieldRun[] {
  const runs: FieldRun[] = [];
  for (const [key, fields] of grouped) {
    const nodes = fields.map(({ node }) => node);
    compiler.fieldsOf.set(nodes, fields);
    const run = sharedField(compiler, type, { key, nodes, identity: identityOf(fields) });
    if (run !== undefined) runs.push(run);
  }
  compiler.shared.memory.addSelectionSet(runs.length);
  return runs;
}

/** The parts of a selection set below depend on the usages of the fields. */
function identityOf(fields: readonly DeferredField[]): readonly object[] {
  return fields.flatMap(({ node, usage }) => (usage === undefined ? [node] : [node, usage]));
}
