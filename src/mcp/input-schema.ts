import {
  type GraphQLEnumType,
  type GraphQLInputType,
  type GraphQLScalarType,
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

/** A schema of JSON Schema 2020-12. */
type JsonSchema = Readonly<Record<string, unknown>>;

/** The scalars of the specification, as input. */
const SCALARS: Readonly<Record<string, JsonSchema>> = {
  Int: { type: 'integer', format: 'int32' },
  Float: { type: 'number' },
  String: { type: 'string' },
  Boolean: { type: 'boolean' },
  ID: { type: ['string', 'integer'] },
};

/** Describes a value of a scalar or an enum. Any JSON value may belong to another scalar. */
function leafSchema(type: GraphQLScalarType | GraphQLEnumType): JsonSchema {
  if (isEnumType(type)) return { type: 'string', enum: type.getValues().map(({ name }) => name) };
  const { name, description } = type;
  return SCALARS[name] ?? { title: name, ...(description ? { description } : undefined) };
}

/** Allows null in addition to the values of a schema. */
function orNull(schema: JsonSchema): JsonSchema {
  const { type, enum: values, anyOf } = schema;
  if (Array.isArray(anyOf)) return { anyOf: [...anyOf, { type: 'null' }] };
  if (type === undefined) return '$ref' in schema ? { anyOf: [schema, { type: 'null' }] } : schema;
  const nullable = { ...schema, type: [type, 'null'].flat() };
  return Array.isArray(values) ? { ...nullable, enum: [...values, null] } : nullable;
}

/** Describes the variables of an operation; undefined if it has none. Adds the input objects to `definitions`. */
export function schemaOfVariables(
  schema: GraphQLSchema,
  { variableDefinitions = [] }: OperationDefinitionNode,
  definitions: Record<string, object>,
): JsonSchema | undefined {
  if (variableDefinitions.length === 0) return undefined;
  const properties: Record<string, JsonSchema> = {};
  const required: string[] = [];
  for (const { variable, type: typeNode, defaultValue } of variableDefinitions) {
    const type = typeFromAST(schema, typeNode);
    if (!isInputType(type)) continue;
    const described = inputSchema(type, definitions);
    const name = variable.name.value;
    properties[name] =
      defaultValue === undefined ? described : { ...described, default: valueFromASTUntyped(defaultValue) };
    if (isNonNullType(type) && defaultValue === undefined) required.push(name);
  }
  return { type: 'object', properties, ...(required.length > 0 ? { required } : undefined) };
}

function inputSchema(type: GraphQLInputType, definitions: Record<string, object>): JsonSchema {
  if (isNonNullType(type)) return nonNullInput(type.ofType, definitions);
  return orNull(nonNullInput(type, definitions));
}

function nonNullInput(type: GraphQLInputType, definitions: Record<string, object>): JsonSchema {
  if (isListType(type)) return { type: 'array', items: inputSchema(type.ofType, definitions) };
  if (!isInputObjectType(type)) return leafSchema(type);
  const name = `Input.${type.name}`;
  if (!Object.hasOwn(definitions, name)) {
    const properties: Record<string, JsonSchema> = {};
    // Before its fields, which may have the same type.
    const definition: Record<string, unknown> = { type: 'object', properties, additionalProperties: false };
    definitions[name] = definition;
    const fields = Object.values(type.getFields());
    for (const field of fields) properties[field.name] = inputSchema(field.type, definitions);
    const required = fields.filter(isRequiredInputField);
    if (required.length > 0) definition['required'] = required.map((field) => field.name);
    if (type.isOneOf === true) Object.assign(definition, { minProperties: 1, maxProperties: 1 });
  }
  return { $ref: `#/$defs/${name}` };
}
