import {
  type DirectiveNode,
  type FieldNode,
  type FragmentDefinitionNode,
  type GraphQLCompositeType,
  type GraphQLInputType,
  type GraphQLObjectType,
  type GraphQLOutputType,
  type GraphQLSchema,
  isAbstractType,
  isCompositeType,
  isEnumType,
  isInputObjectType,
  isInputType,
  isListType,
  isNonNullType,
  isRequiredInputField,
  Kind,
  type OperationDefinitionNode,
  OperationTypeNode,
  SchemaMetaFieldDef,
  type SelectionSetNode,
  TypeMetaFieldDef,
  typeFromAST,
  valueFromASTUntyped,
} from 'graphql';
import type { CoreDocuments } from '../core/by-id.ts';
import type { LoadedDocument } from '../core/documents.ts';
import { fragmentsOf } from '../execution/document.ts';

/** The OpenAPI paths of trusted queries, and the schemas of their variables. */
interface TrustedPaths {
  readonly paths: Record<string, Record<string, object>>;
  readonly schemas: Record<string, object>;
}

type DescribeResponses = (data: JsonSchema) => object;

/** Describes each trusted query as a GET of the path of its id. */
export function describeTrustedQueries(
  path: string,
  documents: CoreDocuments,
  responses: DescribeResponses,
): TrustedPaths {
  const described: TrustedPaths = { paths: {}, schemas: {} };
  const { schema, loaded } = documents.trusted() ?? {};
  if (schema === undefined || loaded === undefined) return described;
  const taken = new Set<string>();
  for (const [id, document] of loaded) {
    const queries = queriesOf(document);
    if (queries.length === 0) continue;
    const get = describe({ schema, document, queries }, described.schemas, responses);
    const operationId = uniqueId(queries[0]?.name?.value ?? 'query', id, taken);
    described.paths[`${path}/${encodeURIComponent(id).replaceAll('%3A', ':')}`] = {
      get: { operationId, ...get },
    };
  }
  return described;
}

const queriesOf = ({ document }: LoadedDocument): readonly OperationDefinitionNode[] =>
  document.definitions.filter(
    (node): node is OperationDefinitionNode =>
      node.kind === Kind.OPERATION_DEFINITION && node.operation === OperationTypeNode.QUERY,
  );

/** Adds the id of the document to a name that another document has. */
function uniqueId(name: string, id: string, taken: Set<string>): string {
  const operationId = taken.has(name) ? `${name}_${id.replace(/\W+/g, '_')}` : name;
  taken.add(operationId);
  return operationId;
}

interface Queries {
  readonly schema: GraphQLSchema;
  readonly document: LoadedDocument;
  readonly queries: readonly OperationDefinitionNode[];
}

function describe(all: Queries, schemas: Record<string, object>, responses: DescribeResponses): object {
  const { document, queries } = all;
  const names = queries.flatMap(({ name }) => name?.value ?? []);
  const isOne = document.operations.has(undefined);
  const description = queries.flatMap((query) => descriptionOf(query) ?? []).join('\n\n');
  return {
    summary: names.length === 0 ? 'Run a trusted query' : `Run the trusted query ${names.join(' or ')}`,
    ...(description === '' ? undefined : { description }),
    tags: ['GraphQL'],
    parameters: [...(isOne ? [] : [operationName(names)]), ...variables(all, schemas)],
    responses: responses(union(queries.map((query) => dataOf(all, query)))),
  };
}

/** Executable descriptions are new in the edition of September 2025. */
export const descriptionOf = (query: OperationDefinitionNode): string | undefined =>
  (query as { readonly description?: { readonly value: string } }).description?.value;

const operationName = (names: readonly string[]): object => ({
  name: 'operationName',
  in: 'query',
  required: true,
  schema: { type: 'string', enum: names },
});

function variables({ schema, queries }: Queries, components: Record<string, object>): readonly object[] {
  const described = queries.map((query) => schemaOfVariables(schema, query, components));
  const known = described.filter((each) => each !== undefined);
  if (known.length === 0) return [];
  const required = described.every((each) => each !== undefined && 'required' in each);
  const content = { 'application/json': { schema: union(known) } };
  return [
    { name: 'variables', in: 'query', required, description: 'The variables as a JSON object', content },
  ];
}

function dataOf({ schema, document }: Queries, query: OperationDefinitionNode): JsonSchema {
  const root = schema.getQueryType();
  if (root === null || root === undefined) return {};
  const describer = new SelectionDescriber(schema, fragmentsOf(document.document));
  return describer.describeComposite(root, [query.selectionSet]);
}

const union = (schemas: readonly JsonSchema[]): JsonSchema =>
  schemas.length === 1 ? (schemas[0] as JsonSchema) : { anyOf: schemas };

/** The fields with one response key. */
interface Selected {
  readonly nodes: FieldNode[];
  /** Whether every response has the key. */
  isCertain: boolean;
}

/** Directives that omit a selection, or send it later. */
const OMITTING = new Set(['skip', 'include', 'defer']);

/** Describes the `data` of operations in JSON Schema 2020-12, by their selections. */
class SelectionDescriber {
  readonly #schema: GraphQLSchema;
  readonly #fragments: ReadonlyMap<string, FragmentDefinitionNode>;

  constructor(schema: GraphQLSchema, fragments: ReadonlyMap<string, FragmentDefinitionNode>) {
    this.#schema = schema;
    this.#fragments = fragments;
  }

  /** Describes a value of a composite type. An abstract type has one form per set of fields. */
  describeComposite(type: GraphQLCompositeType, selections: readonly SelectionSetNode[]): JsonSchema {
    if (!isAbstractType(type)) return this.#describeObject(type, selections);
    const forms = new Map<string, JsonSchema>();
    for (const possible of this.#schema.getPossibleTypes(type)) {
      const form = this.#describeObject(possible, selections);
      forms.set(JSON.stringify(form), form);
    }
    const [only, ...others] = forms.values();
    return only !== undefined && others.length === 0 ? only : { anyOf: [...forms.values()] };
  }

  #describeObject(type: GraphQLObjectType, selections: readonly SelectionSetNode[]): JsonSchema {
    const selected = new Map<string, Selected>();
    for (const each of selections) this.#collect(type, each, selected);
    const properties: Record<string, JsonSchema> = {};
    for (const [key, { nodes }] of selected) properties[key] = this.#describeField(type, nodes);
    const required = [...selected].filter(([, { isCertain }]) => isCertain).map(([key]) => key);
    return {
      type: 'object',
      properties,
      ...(required.length > 0 ? { required } : undefined),
      additionalProperties: false,
    };
  }

  #collect(
    type: GraphQLObjectType,
    { selections }: SelectionSetNode,
    selected: Map<string, Selected>,
    isCertain = true,
  ): void {
    for (const node of selections) {
      const isIncluded = isCertain && !isOmissible(node.directives);
      if (node.kind === Kind.FIELD) {
        const key = node.alias?.value ?? node.name.value;
        const known = selected.get(key);
        if (known === undefined) selected.set(key, { nodes: [node], isCertain: isIncluded });
        else {
          known.nodes.push(node);
          known.isCertain ||= isIncluded;
        }
        continue;
      }
      const fragment = node.kind === Kind.FRAGMENT_SPREAD ? this.#fragments.get(node.name.value) : node;
      if (fragment === undefined || !this.#applies(fragment.typeCondition?.name.value, type)) continue;
      this.#collect(type, fragment.selectionSet, selected, isIncluded);
    }
  }

  #applies(condition: string | undefined, type: GraphQLObjectType): boolean {
    if (condition === undefined || condition === type.name) return true;
    const wanted = this.#schema.getType(condition);
    return isAbstractType(wanted) && this.#schema.isSubType(wanted, type);
  }

  #describeField(parent: GraphQLObjectType, nodes: readonly FieldNode[]): JsonSchema {
    const name = nodes[0]?.name.value ?? '';
    if (name === '__typename') return { const: parent.name };
    const field = META_FIELDS.get(name) ?? parent.getFields()[name];
    if (field === undefined) return {};
    return this.#describeType(
      field.type,
      nodes.flatMap(({ selectionSet }) => selectionSet ?? []),
    );
  }

  #describeType(type: GraphQLOutputType, selections: readonly SelectionSetNode[]): JsonSchema {
    if (!isNonNullType(type)) return orNull(this.#describeNonNull(type, selections));
    return this.#describeNonNull(type.ofType, selections);
  }

  #describeNonNull(type: GraphQLOutputType, selections: readonly SelectionSetNode[]): JsonSchema {
    if (isListType(type)) return { type: 'array', items: this.#describeType(type.ofType, selections) };
    return isCompositeType(type) ? this.describeComposite(type, selections) : leafSchema(type, 'output');
  }
}

const META_FIELDS = new Map([SchemaMetaFieldDef, TypeMetaFieldDef].map((field) => [field.name, field]));

const isOmissible = (directives: readonly DirectiveNode[] | undefined): boolean =>
  directives?.some(({ name }) => OMITTING.has(name.value)) === true;

/** A schema of JSON Schema 2020-12, which OpenAPI 3.1 uses. */
export type JsonSchema = Readonly<Record<string, unknown>>;

/** The scalars of the specification. As input an `ID` is a string or an integer. */
const SCALARS: Readonly<Record<string, JsonSchema>> = {
  Int: { type: 'integer', format: 'int32' },
  Float: { type: 'number' },
  String: { type: 'string' },
  Boolean: { type: 'boolean' },
  ID: { type: 'string' },
};
const INPUT_ID: JsonSchema = { type: ['string', 'integer'] };

/** Describes a value of a scalar or an enum. Any JSON value may belong to another scalar. */
function leafSchema(type: unknown, direction: 'input' | 'output'): JsonSchema {
  if (isEnumType(type)) return { type: 'string', enum: type.getValues().map(({ name }) => name) };
  const { name, description } = type as { readonly name: string; readonly description?: string | null };
  if (name === 'ID' && direction === 'input') return INPUT_ID;
  return SCALARS[name] ?? { title: name, ...(description ? { description } : undefined) };
}

/** Allows null in addition to the values of a schema. */
export function orNull(schema: JsonSchema): JsonSchema {
  const { type, enum: values, anyOf } = schema;
  if (Array.isArray(anyOf)) return { anyOf: [...anyOf, { type: 'null' }] };
  if (type === undefined) return '$ref' in schema ? { anyOf: [schema, { type: 'null' }] } : schema;
  const nullable = { ...schema, type: [type, 'null'].flat() };
  return Array.isArray(values) ? { ...nullable, enum: [...values, null] } : nullable;
}

/** Describes the variables of an operation; undefined if it has none. Adds the input objects to `components`. */
export function schemaOfVariables(
  schema: GraphQLSchema,
  { variableDefinitions = [] }: OperationDefinitionNode,
  components: Record<string, object>,
): JsonSchema | undefined {
  if (variableDefinitions.length === 0) return undefined;
  const properties: Record<string, JsonSchema> = {};
  const required: string[] = [];
  for (const { variable, type: typeNode, defaultValue } of variableDefinitions) {
    const type = typeFromAST(schema, typeNode);
    if (!isInputType(type)) continue;
    const described = inputSchema(type, components);
    const name = variable.name.value;
    properties[name] =
      defaultValue === undefined ? described : { ...described, default: valueFromASTUntyped(defaultValue) };
    if (isNonNullType(type) && defaultValue === undefined) required.push(name);
  }
  return { type: 'object', properties, ...(required.length > 0 ? { required } : undefined) };
}

function inputSchema(type: GraphQLInputType, components: Record<string, object>): JsonSchema {
  if (isNonNullType(type)) return nonNullInput(type.ofType, components);
  return orNull(nonNullInput(type, components));
}

function nonNullInput(type: GraphQLInputType, components: Record<string, object>): JsonSchema {
  if (isListType(type)) return { type: 'array', items: inputSchema(type.ofType, components) };
  if (!isInputObjectType(type)) return leafSchema(type, 'input');
  const name = `Input.${type.name}`;
  if (!Object.hasOwn(components, name)) {
    const properties: Record<string, JsonSchema> = {};
    // Before its fields, which may have the same type.
    const component: Record<string, unknown> = { type: 'object', properties, additionalProperties: false };
    components[name] = component;
    const fields = Object.values(type.getFields());
    for (const field of fields) properties[field.name] = inputSchema(field.type, components);
    const required = fields.filter(isRequiredInputField);
    if (required.length > 0) component['required'] = required.map((field) => field.name);
    if (type.isOneOf === true) Object.assign(component, { minProperties: 1, maxProperties: 1 });
  }
  return { $ref: `#/components/schemas/${name}` };
}
