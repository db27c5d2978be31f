import {
  defaultFieldResolver,
  defaultTypeResolver,
  type FieldNode,
  type FragmentDefinitionNode,
  type GraphQLField,
  type GraphQLFieldResolver,
  GraphQLIncludeDirective,
  type GraphQLObjectType,
  type GraphQLSchema,
  GraphQLSkipDirective,
  type GraphQLTypeResolver,
  getDirectiveValues,
  getLocation,
  getNamedType,
  type InlineFragmentNode,
  isAbstractType,
  isObjectType,
  Kind,
  type OperationDefinitionNode,
  SchemaMetaFieldDef,
  type SelectionNode,
  type SelectionSetNode,
  type SourceLocation,
  TypeMetaFieldDef,
  TypeNameMetaFieldDef,
  typeFromAST,
} from 'graphql';
import { V17 } from '../execution/graphql-version.ts';
import { watchLoads } from '../execution/n-plus-one.ts';
import { batchResolverOf } from '../execution/resolve-many.ts';
import type { EngineSettings, MemoryAccount, ValidatedOperation } from '../execution/types.ts';
import { compilePosition } from './complete.ts';
import type { Execution, FieldPlan, FieldRun, ObjectRun, Program, Resolver } from './execution.ts';
import { leafPropertyField, propertyField, refusedField, resolverField, runFields } from './fields.ts';
import { compileArguments } from './input.ts';
import { type BufferPool, createBufferPool, StaticText, writeStatic } from './json.ts';

type Pools = WeakMap<EngineSettings, BufferPool>;

/** The pools by settings: all operations of one handler share a pool. */
const pools: Pools = new WeakMap();

/** The pools for deferred parts. They are smaller than responses, and many of them may wait at a time. */
const partPools: Pools = new WeakMap();
const PART_SIZE = 512;

/** Prepares an operation for compilation. */
export function createProgram(
  { schema, visible = schema, document, operation }: ValidatedOperation,
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
    visible,
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
    isRestricted: false,
    pool: poolFor(settings),
    expectedBytes: 0,
    lastEvent: undefined,
  };
}

function unlessDefault<T>(resolver: T | undefined, standard: T): T | undefined {
  return resolver === standard ? undefined : resolver;
}

function poolFor(settings: EngineSettings): BufferPool {
  return poolOf(pools, settings, createBufferPool);
}

/** Returns the program of the deferred parts of an operation. */
export function programOfParts(program: Program): Program {
  const pool = poolOf(partPools, program.settings, () => createBufferPool(PART_SIZE));
  return { ...program, pool, expectedBytes: 0, lastEvent: undefined };
}

function poolOf(byKey: Pools, settings: EngineSettings, create: () => BufferPool): BufferPool {
  let pool = byKey.get(settings);
  if (pool === undefined) {
    pool = create();
    byKey.set(settings, pool);
  }
  return pool;
}

/** The fields of an operation. */
export interface RootFields {
  readonly fields: readonly FieldRun[];
  /** Called when all fields were started; writes nothing. */
  readonly after: FieldRun | undefined;
}

/** A field under one response key. Fields with the same `identity` have the same compiled form. */
interface FieldIdentity {
  readonly key: string;
  readonly nodes: readonly FieldNode[];
  readonly identity: readonly object[];
}

/** Compiles one variant of a program: one combination of the variables of `@skip` and `@include`. */
export class Compiler {
  readonly program: Program;
  readonly shared: SharedPlans;
  /** Fields with a selection set, which may depend on `@skip` and `@include`. */
  readonly #compositeFields = new SharedFields();

  constructor(program: Program, shared: SharedPlans) {
    this.program = program;
    this.shared = shared;
  }

  /** Compiles the fields of the operation. */
  compileRoot(ex: Execution): RootFields {
    const { program } = this;
    const grouped = collectRootFields(program, program.rootType, ex.variables);
    return { fields: this.#compileFields(program.rootType, grouped), after: undefined };
  }

  /**
   * Compiles the merged selection sets of some field nodes for one object type. The fields are compiled when the first
   * value arrives, so fields that no execution reaches cost nothing, however often the document spreads its fragments.
   */
  compileSelectionSet(type: GraphQLObjectType, nodes: readonly FieldNode[]): ObjectRun {
    let fields: readonly FieldRun[] | undefined;
    return (ex, source, path) => {
      fields ??= this.compileSubfields(type, nodes, ex);
      runFields(ex, fields, source, path);
    };
  }

  protected compileSubfields(
    type: GraphQLObjectType,
    nodes: readonly FieldNode[],
    ex: Execution,
  ): readonly FieldRun[] {
    return this.#compileFields(type, collectSubfields(this.program, type, nodes, ex.variables));
  }

  #compileFields(
    type: GraphQLObjectType,
    grouped: ReadonlyMap<string, readonly FieldNode[]>,
  ): readonly FieldRun[] {
    const fields: FieldRun[] = [];
    for (const [key, nodes] of grouped) {
      const field = this.compileField(type, { key, nodes, identity: nodes });
      if (field !== undefined) fields.push(field);
    }
    this.shared.memory.addSelectionSet(fields.length);
    return fields;
  }

  /** Returns the compiled form of a field; undefined if the type has no such field. */
  protected compileField(
    type: GraphQLObjectType,
    { key, nodes, identity }: FieldIdentity,
  ): FieldRun | undefined {
    const { leafFields, memory } = this.shared;
    const isLeaf = nodes[0]?.selectionSet === undefined;
    const known = isLeaf ? leafFields : this.#compositeFields;
    const parts = isLeaf ? nodes : identity;
    let field = known.get(type, parts);
    if (field === undefined) {
      field = compileField(this, type, key, nodes);
      if (field === undefined) return undefined;
      known.set(type, parts, field);
      memory.addField();
    }
    return field;
  }
}

/** Compiles a field of an object type under one response key; undefined if the type has no such field. */
function compileField(
  compiler: Compiler,
  parentType: GraphQLObjectType,
  key: string,
  nodes: readonly FieldNode[],
): FieldRun | undefined {
  const { program } = compiler;
  const definition = definitionOf(program.schema, parentType, (nodes[0] as FieldNode).name.value);
  if (definition === undefined) return undefined;
  compiler.shared.resolvers.add(definition);
  const plan = planField(compiler, parentType, definition, { key, nodes });
  const run = taggedField(program, plan, countedField(program, plan, compileRun(compiler, plan)));
  return guardedField(compiler, plan, run);
}

/** Checks the caller first, if the schema requires something for the field. */
function guardedField(compiler: Compiler, plan: FieldPlan, run: FieldRun): FieldRun {
  const { schema, operation, settings, isRestricted } = compiler.program;
  if (!isRestricted) return run;
  const guard = settings.guards?.fieldGuard(schema, plan.parentType, plan.definition);
  if (guard === undefined) return run;
  const refusalOf = (ex: Execution) => guard(ex.inputs, plan.nodes[0] as FieldNode, operation);
  const refused = refusedField(plan, compilePosition(compiler, plan), refusalOf);
  return (ex, source, parent) => {
    if (refusalOf(ex) !== undefined) refused(ex, source, parent);
    else run(ex, source, parent);
  };
}

function compileRun(compiler: Compiler, plan: FieldPlan): FieldRun {
  if (plan.definition === TypeNameMetaFieldDef) return typeNameField(plan);
  const position = compilePosition(compiler, plan);
  if (plan.resolve !== undefined) return resolverField(plan, plan.resolve, position);
  return leafPropertyField(plan, position) ?? propertyField(plan, position);
}

/**
 * Counts the executions of a field for its cache policy, if its resolver or a method of its parent value may
 * replace its hint by `info.cacheControl`.
 */
function countedField(
  { operation, rootType, settings: { caching } }: Program,
  { definition, parentType, resolve, needsInfo }: FieldPlan,
  run: FieldRun,
): FieldRun {
  const mayReplaceHint = resolve === undefined || needsInfo;
  if (caching === undefined || operation.operation !== 'query' || !mayReplaceHint) return run;
  if (!caching.isCounted(definition, parentType === rootType)) return run;
  return (ex, source, parent) => {
    ex.inputs.caching?.count(definition);
    run(ex, source, parent);
  };
}

/** Adds the tags of the object that a field belongs to, if its type has some. */
function taggedField(
  { settings: { caching } }: Program,
  { definition, parentType }: FieldPlan,
  run: FieldRun,
): FieldRun {
  const tags = caching?.objectTagsOf(parentType, definition);
  if (tags === undefined) return run;
  return (ex, source, parent) => {
    ex.inputs.caching?.addObjectTags(tags, source);
    run(ex, source, parent);
  };
}

function definitionOf(
  schema: GraphQLSchema,
  parentType: GraphQLObjectType,
  name: string,
): GraphQLField<unknown, unknown> | undefined {
  if (name === TypeNameMetaFieldDef.name) return TypeNameMetaFieldDef;
  if (schema.getQueryType() === parentType) {
    if (name === SchemaMetaFieldDef.name) return SchemaMetaFieldDef;
    if (name === TypeMetaFieldDef.name) return TypeMetaFieldDef;
  }
  return parentType.getFields()[name];
}

function typeNameField(plan: FieldPlan): FieldRun {
  const text = new StaticText(`,${JSON.stringify(plan.key)}:${JSON.stringify(plan.parentType.name)}`);
  return (ex) => writeStatic(ex, text);
}

/** Collects the properties of a field that do not depend on an execution. */
function planField(
  { program }: Compiler,
  parentType: GraphQLObjectType,
  definition: GraphQLField<unknown, unknown>,
  { key, nodes }: { key: string; nodes: readonly FieldNode[] },
): FieldPlan {
  const resolve = batchResolverOf(definition, parentType) ?? definition.resolve ?? program.fieldResolver;
  let locations: readonly SourceLocation[] | undefined;
  return {
    key: internalized(key),
    name: internalized(definition.name),
    parentType,
    definition,
    type: definition.type,
    nodes,
    keyText: new StaticText(`,${JSON.stringify(key)}:`),
    resolve: resolve as Resolver | undefined,
    args: compileArguments(definition, nodes[0] as FieldNode),
    needsInfo: (resolve !== undefined && mayReadArgument(resolve, 3)) || typeNeedsInfo(program, definition),
    watch: watchLoads(definition, parentType),
    locations: () => {
      locations ??= locationsOf(nodes);
      return locations;
    },
  };
}

/** Whether a function that determines object types of the field may read `info`. */
function typeNeedsInfo({ schema, typeResolver }: Program, { type }: GraphQLField<unknown, unknown>): boolean {
  const named = getNamedType(type);
  if (isObjectType(named)) return typeCheckNeedsInfo(named);
  if (!isAbstractType(named)) return false;
  const resolveType = named.resolveType ?? typeResolver;
  if (resolveType !== undefined && mayReadArgument(resolveType, 2)) return true;
  return schema.getPossibleTypes(named).some(typeCheckNeedsInfo);
}

function typeCheckNeedsInfo({ isTypeOf }: GraphQLObjectType): boolean {
  return isTypeOf !== undefined && isTypeOf !== null && mayReadArgument(isTypeOf, 2);
}

/** V8 reads properties faster by internalized strings than by substrings of the document. */
function internalized(name: string): string {
  return Object.keys({ [name]: 0 })[0] as string;
}

function locationsOf(nodes: readonly FieldNode[]): readonly SourceLocation[] | undefined {
  const locations = nodes.flatMap(({ loc }) => (loc === undefined ? [] : getLocation(loc.source, loc.start)));
  return locations.length === 0 ? undefined : locations;
}

/** The parts of a document that collecting fields needs. */
export interface CollectContext {
  readonly schema: GraphQLSchema;
  readonly fragments: Readonly<Record<string, FragmentDefinitionNode>>;
}

interface Collection extends CollectContext {
  readonly type: GraphQLObjectType;
  readonly variables: Record<string, unknown>;
  readonly visited: Set<string>;
  readonly grouped: Map<string, FieldNode[]>;
}

/**
 * The fields of an operation by response key, in order of appearance (CollectFields of the specification).
 */
function collectRootFields(
  context: CollectContext & { readonly operation: OperationDefinitionNode },
  type: GraphQLObjectType,
  variables: Record<string, unknown>,
): ReadonlyMap<string, readonly FieldNode[]> {
  const collection = createCollection(context, type, variables);
  visit(collection, context.operation.selectionSet);
  return collection.grouped;
}

/** The merged fields of the selection sets of some field nodes (CollectSubfields). */
function collectSubfields(
  context: CollectContext,
  type: GraphQLObjectType,
  nodes: readonly FieldNode[],
  variables: Record<string, unknown>,
): ReadonlyMap<string, readonly FieldNode[]> {
  const collection = createCollection(context, type, variables);
  for (const node of nodes) if (node.selectionSet !== undefined) visit(collection, node.selectionSet);
  return collection.grouped;
}

function createCollection(
  { schema, fragments }: CollectContext,
  type: GraphQLObjectType,
  variables: Record<string, unknown>,
): Collection {
  return { schema, fragments, type, variables, visited: new Set(), grouped: new Map() };
}

function visit(collection: Collection, set: SelectionSetNode): void {
  for (const selection of set.selections) {
    if (selection.kind === 'Field') {
      if (isIncluded(selection, collection.variables)) addField(collection, selection);
    } else if (selection.kind === 'InlineFragment') {
      if (isIncluded(selection, collection.variables) && applies(collection, selection)) {
        visit(collection, selection.selectionSet);
      }
    } else {
      visitSpread(collection, selection);
    }
  }
}

function addField({ grouped }: Collection, node: FieldNode): void {
  const key = (node.alias ?? node.name).value;
  const group = grouped.get(key);
  if (group === undefined) grouped.set(key, [node]);
  else group.push(node);
}

/** 16 marks a fragment as visited before it checks the type condition, 17 after it. */
function visitSpread(
  collection: Collection,
  spread: Extract<SelectionNode, { kind: 'FragmentSpread' }>,
): void {
  const { visited, fragments } = collection;
  const name = spread.name.value;
  if (visited.has(name) || !isIncluded(spread, collection.variables)) return;
  if (!V17) visited.add(name);
  const fragment = fragments[name];
  if (fragment === undefined || !applies(collection, fragment)) return;
  visited.add(name);
  visit(collection, fragment.selectionSet);
}

/** Whether `@skip` and `@include` keep a selection. */
export function isIncluded(node: SelectionNode, variables: Record<string, unknown>): boolean {
  if (node.directives === undefined || node.directives.length === 0) return true;
  if (getDirectiveValues(GraphQLSkipDirective, node, variables)?.['if'] === true) return false;
  return getDirectiveValues(GraphQLIncludeDirective, node, variables)?.['if'] !== false;
}

/** Whether the type condition of a fragment applies to an object type. */
export function applies(
  { schema, type }: Pick<CollectContext, 'schema'> & { readonly type: GraphQLObjectType },
  fragment: FragmentDefinitionNode | InlineFragmentNode,
): boolean {
  const condition = fragment.typeCondition;
  if (condition === undefined) return true;
  const conditional = typeFromAST(schema, condition);
  if (conditional === type) return true;
  return isAbstractType(conditional) && schema.isSubType(conditional, type);
}

/** The state that the compiled variants of one program share. */
export interface SharedPlans {
  /** Fields without a selection set, which are the same in every variant. */
  readonly leafFields: SharedFields;
  readonly memory: CompiledMemory;
  readonly resolvers: KnownResolvers;
}

/**
 * The resolvers that an operation was compiled with. One that is replaced later (by a guard, a tracer, a mock) has to
 * take effect with the next execution, as with graphql-js.
 */
export class KnownResolvers {
  readonly #fields: GraphQLField<unknown, unknown>[] = [];
  readonly #resolvers: unknown[] = [];
  readonly #known = new Set<object>();

  add(definition: GraphQLField<unknown, unknown>): void {
    if (this.#known.has(definition)) return;
    this.#known.add(definition);
    this.#fields.push(definition);
    this.#resolvers.push(definition.resolve);
  }

  /** Called for each execution. */
  areCurrent(): boolean {
    const fields = this.#fields;
    const resolvers = this.#resolvers;
    for (let i = 0; i < fields.length; i++) {
      if ((fields[i] as GraphQLField<unknown, unknown>).resolve !== resolvers[i]) return false;
    }
    return true;
  }
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
    let branch = branchOf(this.#byType, type);
    for (const node of nodes) {
      branch.next ??= new Map();
      branch = branchOf(branch.next, node);
    }
    branch.run = run;
  }
}

function branchOf<K>(branches: Map<K, Branch>, key: K): Branch {
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

/*
 * `info` costs an object per field, so it is only created for functions that may read it. `length` is not
 * enough: it excludes rest and default parameters, and code may redefine it. So the source text is analysed
 * too. If it cannot be analysed the result is true, which costs an unused `info`; a wrong false would break a
 * resolver.
 */

/** Whether a function may read its argument number `index`, counted from 0. */
export function mayReadArgument(fn: (...args: never[]) => unknown, index: number): boolean {
  if (fn.length > index) return true;
  const source = Function.prototype.toString.call(fn);
  // Bound and native functions and proxies have no readable source.
  if (/\barguments\b|\beval\b|\[native code\]/.test(source)) return true;
  if (SINGLE_PARAMETER.test(source)) return index === 0;
  const list = PARAMETERS.exec(source)?.[1];
  if (list === undefined || list.includes('...')) return true;
  const names = list.replace(/,\s*$/, '').replace(PATTERN, '');
  return names.split(',').length > index;
}

/** Strings, comments, defaults and calls in a list of parameters need a real parser. */
const PARAMETERS = /^(?:async\b\s*)?(?:function\b\s*)?\*?\s*[\w$]*\s*\(([^"'`/=()]*)\)/;
const SINGLE_PARAMETER = /^(?:async\s+)?[\w$]+\s*=>/;
/** The commas of a nested pattern stay, so its names count as parameters. */
const PATTERN = /\{[^{}]*\}|\[[^[\]]*\]/g;
