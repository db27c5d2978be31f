import {
  type GraphQLField,
  type GraphQLSchema,
  type GraphQLType,
  getNamedType,
  isInterfaceType,
  isLeafType,
  isObjectType,
  isRequiredArgument,
} from 'graphql';

const MAX_FIELDS = 5;

/** A query of the first field that needs no argument, below comments. */
export function firstQuery(schema: GraphQLSchema, hints: readonly string[]): string {
  const type = schema.getQueryType();
  const fields = type ? callable(type) : [];
  const selection =
    fields.map((field) => select(field)).find((found) => found !== undefined) ?? '  __typename';
  return ['# A first query from your schema.', ...hints, '', '{', selection, '}', ''].join('\n');
}

/** Selects a field with the leaf fields of its type; undefined if the type has no such fields. */
function select({ name, type }: GraphQLField<unknown, unknown>): string | undefined {
  const named = getNamedType(type);
  if (isLeafType(named)) return `  ${name}`;
  const leaves = leavesOf(named).slice(0, MAX_FIELDS);
  if (leaves.length === 0) return undefined;
  return [`  ${name} {`, ...leaves.map((leaf) => `    ${leaf}`), '  }'].join('\n');
}

/** What GraphiQL selects of a field that has no selection set yet when it runs: the rule of GraphiQL, without deprecated fields. */
export function namesOfLeaves(type: GraphQLType): string[] {
  const names = callable(type).map(({ name }) => name);
  const usual = ['id', 'edges', 'node'].find((name) => names.includes(name));
  return usual === undefined ? leavesOf(type) : [usual];
}

const leavesOf = (type: GraphQLType): string[] =>
  callable(type)
    .filter((field) => isLeafType(getNamedType(field.type)))
    .map(({ name }) => name);

/** The fields that need no argument and are not deprecated. */
function callable(type: GraphQLType): GraphQLField<unknown, unknown>[] {
  if (!isObjectType(type) && !isInterfaceType(type)) return [];
  return Object.values(type.getFields()).filter(
    ({ args, deprecationReason }) => deprecationReason == null && !args.some(isRequiredArgument),
  );
}
