import {
  type DirectiveNode,
  type DocumentNode,
  type FieldNode,
  type FragmentDefinitionNode,
  type GraphQLArgument,
  type GraphQLField,
  type GraphQLInputField,
  type GraphQLInputType,
  type GraphQLNamedType,
  type GraphQLObjectType,
  type GraphQLOutputType,
  type GraphQLSchema,
  getNamedType,
  getNullableType,
  isAbstractType,
  isCompositeType,
  isInputObjectType,
  isInterfaceType,
  isListType,
  isNonNullType,
  isObjectType,
  type OperationDefinitionNode,
  type SelectionNode,
  valueFromASTUntyped,
} from 'graphql';
import { valueAt } from './random-case.ts';

// Executes a query on the graph of random-case.ts as a reader of docs/authorization.md would: nothing is prepared, and
// each value is decided when it is reached.

/** The scopes and policies of a caller. */
export interface OracleCaller {
  readonly scopes: readonly string[] | null;
  readonly policies: readonly string[];
}

export interface Judgement {
  readonly data: Record<string, unknown> | null;
  /** The places that are hidden. */
  readonly hidden: readonly string[];
}

type Path = readonly (string | number)[];
type Variables = Readonly<Record<string, unknown>>;

class Hidden {
  readonly path: Path;
  constructor(path: Path) {
    this.path = path;
  }
}

interface Annotated {
  readonly astNode?: { readonly directives?: readonly DirectiveNode[] | undefined } | null | undefined;
}

/** The rules on an element, as text. */
const written = ({ astNode }: Annotated): readonly string[] =>
  (astNode?.directives ?? []).map(({ name, arguments: [argument] = [] }) => {
    const lists = argument === undefined ? [] : (valueFromASTUntyped(argument.value) as string[][]);
    const sorted = lists.map((list) => JSON.stringify([...new Set(list)].sort()));
    return JSON.stringify([name.value, [...new Set(sorted)].sort()]);
  });

function isMet(rule: string, { scopes, policies }: OracleCaller): boolean {
  const [name, lists] = JSON.parse(rule) as [string, string[]];
  const held = name === 'policy' ? policies : scopes;
  if (name === 'authenticated' || held === null) return scopes !== null;
  return lists.some((list) => (JSON.parse(list) as string[]).every((each) => held.includes(each)));
}

export class Oracle {
  readonly #schema: GraphQLSchema;
  readonly #document: DocumentNode;
  readonly #variables: Variables;
  readonly #caller: OracleCaller;
  readonly #keepsParents: boolean;
  readonly #hidden: Path[] = [];

  /** With `keepsParents`, the null of a required field stays where it is, as with `onError: NULL`. */
  constructor(
    schema: GraphQLSchema,
    document: DocumentNode,
    given: Variables,
    caller: OracleCaller,
    keepsParents = false,
  ) {
    this.#keepsParents = keepsParents;
    this.#schema = schema;
    this.#document = document;
    this.#caller = caller;
    const definitions = this.#operation().variableDefinitions ?? [];
    const defaults = definitions.flatMap(({ variable, defaultValue }) =>
      defaultValue ? [[variable.name.value, valueFromASTUntyped(defaultValue)]] : [],
    );
    this.#variables = { ...Object.fromEntries(defaults), ...given };
  }

  judge(): Judgement {
    const query = this.#schema.getQueryType() as GraphQLObjectType;
    const data = this.#catching(() => this.#object(query, '', this.#operation().selectionSet.selections, []));
    return { data: data as Judgement['data'], hidden: this.#hidden.map((path) => path.join('.')) };
  }

  /** Whether values of an object type are hidden. */
  hides(type: string): boolean {
    return this.#refuses(this.#rulesOfType(this.#schema.getType(type) as GraphQLObjectType));
  }

  /** Whether a field is hidden, whatever its value is. */
  hidesField(parent: GraphQLObjectType, name: string): boolean {
    const field = parent.getFields()[name];
    return field !== undefined && this.#refuses(this.#rulesOfField(parent, field));
  }

  #refuses(rules: readonly string[]): boolean {
    return !rules.every((rule) => isMet(rule, this.#caller));
  }

  #propagates(type: GraphQLOutputType): boolean {
    return isNonNullType(type) && !this.#keepsParents;
  }

  #operation(): OperationDefinitionNode {
    return this.#document.definitions.find(
      ({ kind }) => kind === 'OperationDefinition',
    ) as OperationDefinitionNode;
  }

  #rulesOfType(type: GraphQLNamedType): readonly string[] {
    const above = isObjectType(type) || isInterfaceType(type) ? type.getInterfaces() : [];
    const own = [type, ...above].flatMap(written);
    if (!isAbstractType(type)) return own;
    const [first = [], ...others] = this.#schema
      .getPossibleTypes(type)
      .map((each) => this.#rulesOfType(each));
    return [...own, ...first.filter((rule) => others.every((rules) => rules.includes(rule)))];
  }

  #rulesOfField(parent: GraphQLObjectType, field: GraphQLField<unknown, unknown>): readonly string[] {
    const same = parent.getInterfaces().flatMap((type) => type.getFields()[field.name] ?? []);
    const root = parent === this.#schema.getQueryType() ? this.#rulesOfType(parent) : [];
    return [...root, ...[field, ...same].flatMap(written), ...this.#rulesOfType(getNamedType(field.type))];
  }

  #rulesOfInput(element: GraphQLArgument | GraphQLInputField, value: unknown): readonly string[] {
    return value === undefined ? [] : [...written(element), ...this.#rulesOfValue(element.type, value)];
  }

  #rulesOfValue(type: GraphQLInputType, value: unknown): readonly string[] {
    if (value === null || value === undefined) return [];
    const nullable = getNullableType(type);
    if (isListType(nullable))
      return [value].flat().flatMap((each) => this.#rulesOfValue(nullable.ofType, each));
    if (!isInputObjectType(nullable)) return this.#rulesOfType(getNamedType(nullable));
    return Object.values(nullable.getFields()).flatMap((field) =>
      this.#rulesOfInput(field, (value as Variables)[field.name]),
    );
  }

  #assert(rules: readonly string[], path: Path): void {
    if (this.#refuses(rules)) throw new Hidden(path);
  }

  #catching(compute: () => unknown): unknown {
    try {
      return compute();
    } catch (error) {
      if (!(error instanceof Hidden)) throw error;
      this.#hidden.push(error.path);
      return null;
    }
  }

  #object(type: GraphQLObjectType, id: string, selections: readonly SelectionNode[], path: Path): unknown {
    const grouped = new Map<string, FieldNode[]>();
    this.#collect(type, selections, grouped);
    const result: Record<string, unknown> = {};
    for (const [key, nodes] of grouped) {
      const name = nodes[0]?.name.value ?? '';
      const field = type.getFields()[name];
      const at = [...path, key];
      if (field === undefined) result[key] = type.name;
      else if (this.#propagates(field.type)) result[key] = this.#field(type, field, nodes, id, at);
      else result[key] = this.#catching(() => this.#field(type, field, nodes, id, at));
    }
    return result;
  }

  #field(
    parent: GraphQLObjectType,
    field: GraphQLField<unknown, unknown>,
    nodes: readonly FieldNode[],
    id: string,
    path: Path,
  ): unknown {
    this.#assert(this.#rulesOfField(parent, field), path);
    for (const { name, value } of nodes[0]?.arguments ?? []) {
      const arg = field.args.find((each) => each.name === name.value) as GraphQLArgument;
      const given =
        value.kind === 'Variable'
          ? this.#variables[value.name.value]
          : valueFromASTUntyped(value, this.#variables as Record<string, unknown>);
      this.#assert(this.#rulesOfInput(arg, given), path);
    }
    const value = valueAt(this.#schema, field.type, `${id}.${field.name}`);
    return this.#complete(field.type, value, nodes, path);
  }

  #complete(type: GraphQLOutputType, value: unknown, nodes: readonly FieldNode[], path: Path): unknown {
    if (value === null) return null;
    const nullable = getNullableType(type);
    if (isListType(nullable)) {
      return (value as unknown[]).map((item, index) => {
        const complete = () => this.#complete(nullable.ofType, item, nodes, [...path, index]);
        return this.#propagates(nullable.ofType) ? complete() : this.#catching(complete);
      });
    }
    if (!isCompositeType(nullable)) return value;
    const { __typename, id } = value as { __typename: string; id: string };
    const concrete = this.#schema.getType(__typename) as GraphQLObjectType;
    this.#assert(this.#rulesOfType(concrete), path);
    return this.#object(
      concrete,
      id,
      nodes.flatMap((node) => node.selectionSet?.selections ?? []),
      path,
    );
  }

  #collect(
    type: GraphQLObjectType,
    selections: readonly SelectionNode[],
    into: Map<string, FieldNode[]>,
  ): void {
    for (const node of selections) {
      if (!this.#isIncluded(node)) continue;
      if (node.kind === 'Field') {
        const key = node.alias?.value ?? node.name.value;
        into.set(key, [...(into.get(key) ?? []), node]);
        continue;
      }
      const fragment =
        node.kind === 'InlineFragment'
          ? node
          : (this.#document.definitions.find(
              (each) => each.kind === 'FragmentDefinition' && each.name.value === node.name.value,
            ) as FragmentDefinitionNode);
      const condition = fragment.typeCondition?.name.value ?? type.name;
      const target = this.#schema.getType(condition);
      const applies = target === type || (isAbstractType(target) && this.#schema.isSubType(target, type));
      if (applies) this.#collect(type, fragment.selectionSet.selections, into);
    }
  }

  #isIncluded({ directives = [] }: SelectionNode): boolean {
    return directives.every(({ name, arguments: [argument] = [] }) => {
      const value =
        argument && valueFromASTUntyped(argument.value, this.#variables as Record<string, unknown>);
      return value === (name.value === 'include');
    });
  }
}
