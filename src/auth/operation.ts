import {
  type FieldNode,
  type GraphQLCompositeType,
  type GraphQLField,
  type GraphQLInputType,
  type GraphQLObjectType,
  type GraphQLSchema,
  getNamedType,
  getNullableType,
  isAbstractType,
  isCompositeType,
  isInputObjectType,
  isListType,
  isObjectType,
  Kind,
  type ValueNode,
  valueFromASTUntyped,
  visit,
} from 'graphql';
import { fieldOf, OperationVariants, visitFields } from '../execution/document.ts';
import type { MemoryAccount, ValidatedOperation } from '../execution/types.ts';
import { namesOf } from './access.ts';
import {
  type Condition,
  intersection,
  requirementsOf,
  type SchemaRequirements,
  union,
} from './requirements.ts';

type Field = GraphQLField<unknown, unknown>;
type Conditions = readonly Condition[];
type Variables = Readonly<Record<string, unknown>>;

/** A selected field that requires something of every caller, whatever the values are. */
interface Demand {
  readonly node: FieldNode;
  /** The coordinate of the field in the schema. */
  readonly coordinate: string;
  readonly isRoot: boolean;
  readonly conditions: Conditions;
}

/** A selected field with arguments that may require more, by their values. */
interface InputDemand extends Omit<Demand, 'conditions'> {
  readonly definition: Field;
}

/** What an operation requires, for one combination of the variables in `@skip` and `@include`. */
interface Requirement {
  readonly demands: readonly Demand[];
  readonly inputs: readonly InputDemand[];
  /** Also those that only some values of abstract types have. */
  readonly possible: Conditions;
  /** The names of the policies among `possible`. */
  readonly policies: readonly string[];
}

/** An estimate of the bytes of a requirement, for each field of the document. */
const BYTES_PER_FIELD = 100;

/** What one operation requires of its callers: computed when the document is prepared, once for each variant. */
export class OperationRequirement {
  readonly #operation: ValidatedOperation;
  readonly #schema: SchemaRequirements;
  readonly #variants: OperationVariants<Requirement>;

  constructor(operation: ValidatedOperation, account: MemoryAccount) {
    this.#operation = operation;
    this.#schema = requirementsOf(operation.schema);
    this.#variants = new OperationVariants(operation, (variable) =>
      new Selection(operation, this.#schema).requirement(variable),
    );
    account.charge(BYTES_PER_FIELD * (operation.size?.fields ?? 1));
    // Without variables it is complete now.
    this.#variants.of({});
  }

  get schemaId(): string {
    return this.#schema.id;
  }

  /** Whether some variant requires something. */
  get isEmpty(): boolean {
    return this.#schema.isEmpty;
  }

  /** The first alternative of the scopes that every caller needs. */
  get scopes(): readonly string[] {
    const lists = this.for({}).demands.flatMap(({ conditions }) =>
      conditions.flatMap(({ kind, anyOf }) => (kind === 'scopes' ? (anyOf[0] ?? []) : [])),
    );
    return [...new Set(lists)];
  }

  /** The fields that require something, and all conditions that an execution may need. */
  for(variables: Variables = {}): Omit<Requirement, 'inputs'> {
    const variant = this.#variants.of(variables);
    const { demands, inputs } = variant;
    if (inputs.length === 0) return variant;
    const given = withDefaults(this.#operation, variables);
    const ofInputs = inputs.map(({ definition, ...demand }) => ({
      ...demand,
      conditions: argumentConditions(this.#schema, definition, demand.node, given),
    }));
    const possible = union([variant.possible, ...ofInputs.map(({ conditions }) => conditions)]);
    return { demands: [...demands, ...ofInputs], possible, policies: namesOf(possible, 'policies') };
  }
}

/** Collects what the selected fields of an operation require. */
class Selection {
  readonly #operation: ValidatedOperation;
  readonly #requirements: SchemaRequirements;
  readonly #demands: Demand[] = [];
  readonly #inputs: InputDemand[] = [];
  readonly #possible = new Set<Condition>();

  constructor(operation: ValidatedOperation, requirements: SchemaRequirements) {
    this.#operation = operation;
    this.#requirements = requirements;
  }

  requirement(variable: (name: string) => unknown): Requirement {
    if (!this.#requirements.isEmpty) {
      visitFields(this.#operation, variable, (type, node, isRoot) => this.#visit(type, node, isRoot));
    }
    const possible = [...this.#possible];
    const policies = namesOf(possible, 'policies');
    return { demands: this.#demands, inputs: this.#inputs, possible, policies };
  }

  /** Returns the types of the values. */
  #visit(type: GraphQLCompositeType, node: FieldNode, isRoot: boolean): readonly GraphQLCompositeType[] {
    const definition = fieldOf(type, node.name.value);
    // Everyone may see __typename. Introspection has its own options.
    if (definition === undefined) return [];
    const coordinate = `${type.name}.${definition.name}`;
    const objects = isObjectType(type) ? [type] : this.#operation.schema.getPossibleTypes(type);
    const ofObjects = objects.map((object) => this.#ofField(object, definition.name));
    const conditions = intersection(ofObjects);
    if (conditions.length > 0) this.#demands.push({ node, coordinate, isRoot, conditions });
    for (const each of ofObjects.flat()) this.#possible.add(each);
    const fields = objects.flatMap((object) => object.getFields()[definition.name] ?? []);
    for (const definition of fields) this.#addArguments({ node, coordinate, isRoot, definition });
    const types = [...new Set(fields.map((field) => getNamedType(field.type)))].filter(isCompositeType);
    for (const each of types) if (isAbstractType(each)) this.#addValues(each);
    return types;
  }

  /** What constant values require is known now. */
  #addArguments(demand: InputDemand): void {
    const { node, definition } = demand;
    if (!node.arguments?.length || !hasGuardedArguments(this.#requirements, definition)) return;
    let isConstant = true;
    const Variable = (): void => {
      isConstant = false;
    };
    for (const { value } of node.arguments) visit(value, { Variable });
    const conditions = argumentConditions(this.#requirements, definition, node, {});
    if (!isConstant) this.#inputs.push(demand);
    else if (conditions.length > 0) this.#demands.push({ ...demand, conditions });
    for (const each of conditions) this.#possible.add(each);
  }

  #ofField(object: GraphQLObjectType, name: string): Conditions {
    const field = object.getFields()[name];
    return field === undefined ? [] : this.#requirements.ofField(object, field);
  }

  #addValues(type: Parameters<GraphQLSchema['getPossibleTypes']>[0]): void {
    for (const object of this.#operation.schema.getPossibleTypes(type)) {
      for (const each of this.#requirements.ofType(object)) this.#possible.add(each);
    }
  }
}

const guardedInputs = new WeakMap<SchemaRequirements, Map<GraphQLInputType, boolean>>();

/** Whether values of an input type may require something. */
function isGuarded(requirements: SchemaRequirements, input: GraphQLInputType): boolean {
  const known = guardedInputs.get(requirements) ?? new Map<GraphQLInputType, boolean>();
  guardedInputs.set(requirements, known);
  const type = getNamedType(input);
  const visited = new Set<GraphQLInputType>();
  const search = (each: GraphQLInputType): boolean => {
    const found = known.get(each);
    if (found !== undefined || visited.has(each)) return found ?? false;
    visited.add(each);
    if (!isInputObjectType(each)) return requirements.ofType(getNamedType(each)).length > 0;
    return Object.values(each.getFields()).some(
      (field) => requirements.ofElement(field).length > 0 || search(getNamedType(field.type)),
    );
  };
  const result = search(type);
  // Only of the type itself: the search of the types within a cycle may have ended early.
  known.set(type, result);
  return result;
}

/** Whether an argument of a field may require something. */
export const hasGuardedArguments = (requirements: SchemaRequirements, { args }: Field): boolean =>
  !requirements.isEmpty &&
  args.some((arg) => requirements.ofElement(arg).length > 0 || isGuarded(requirements, arg.type));

/** The variables that the client gave, and those of the defaults in the document. */
export function withDefaults(
  { operation: { variableDefinitions = [] } }: Pick<ValidatedOperation, 'operation'>,
  variables: Variables = {},
): Variables {
  const defaults = variableDefinitions.flatMap(({ variable, defaultValue }) =>
    defaultValue === undefined ? [] : [[variable.name.value, valueFromASTUntyped(defaultValue)]],
  );
  return { ...Object.fromEntries(defaults), ...variables };
}

/** The conditions of the arguments that a client has given to a field, by their values. */
export function argumentConditions(
  requirements: SchemaRequirements,
  { args }: Field,
  { arguments: nodes = [] }: FieldNode,
  variables: Variables,
): Conditions {
  const found = new Set<Condition>();
  for (const { name, value: node } of nodes) {
    const arg = args.find((each) => each.name === name.value);
    if (arg === undefined) continue;
    const value = argumentValue(node, variables);
    if (value === undefined) continue;
    for (const each of requirements.ofElement(arg)) found.add(each);
    addConditions(requirements, arg.type, value, found);
  }
  return [...found];
}

/** The value of an argument; undefined for a variable without a value. */
function argumentValue(node: ValueNode, variables: Variables): unknown {
  if (node.kind === Kind.VARIABLE)
    return Object.hasOwn(variables, node.name.value) ? variables[node.name.value] : undefined;
  return valueFromASTUntyped(node, variables as Record<string, unknown>);
}

function addConditions(
  requirements: SchemaRequirements,
  input: GraphQLInputType,
  value: unknown,
  found: Set<Condition>,
): void {
  if (value === null || value === undefined || !isGuarded(requirements, input)) return;
  const type = getNullableType(input);
  if (isListType(type)) {
    const items: readonly unknown[] = Array.isArray(value) ? value : [value];
    for (const item of items) addConditions(requirements, type.ofType, item, found);
  } else if (isInputObjectType(type)) {
    for (const field of Object.values(type.getFields())) {
      const member =
        typeof value === 'object' && Object.hasOwn(value, field.name)
          ? (value as Variables)[field.name]
          : undefined;
      if (member === undefined) continue;
      for (const each of requirements.ofElement(field)) found.add(each);
      addConditions(requirements, field.type, member, found);
    }
  } else for (const each of requirements.ofType(getNamedType(type))) found.add(each);
}
