import {
  type GraphQLInputType,
  type GraphQLSchema,
  isEnumType,
  isInputObjectType,
  isInputType,
  isListType,
  isNonNullType,
  isRequiredInputField,
  type OperationDefinitionNode,
  typeFromAST,
  valueFromASTUntyped,
} from 'graphql';

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
export function leafSchema(type: unknown, direction: 'input' | 'output'): JsonSchema {
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
