import {
  type GraphQLCompositeType,
  type GraphQLField,
  type GraphQLObjectType,
  type GraphQLSchema,
  getNamedType,
  isAbstractType,
} from 'graphql';
import {
  type DirectiveArguments,
  directivesOf,
  hasPath,
  type SchemaElement,
  wrongDirective,
} from '../execution/directives.ts';
import { isListOf, optionError } from '../options/rules.ts';
import { GRAPHQL_OPTIONS } from '../options/scopes.ts';
import { getOrCreate, isCount, isObject, isString } from '../options/values.ts';

export interface ListSize {
  readonly assumedSize: number | undefined;
  /** Paths of arguments; a path of several names leads into input objects. */
  readonly slicingArguments: readonly (readonly string[])[];
  readonly sizedFields: readonly string[];
  readonly requireOneSlicingArgument: boolean;
}

/** The costs that a schema assigns to one element. */
interface CostAnnotation {
  /** The argument of `@cost`. */
  readonly weight: number | undefined;
  readonly listSize: ListSize | undefined;
}

const annotations = new WeakMap<object, CostAnnotation>();

/**
 * Returns `@cost` and `@listSize` of an element: of SDL, or of `extensions` in schemas that are created in
 * code.
 *
 * @throws TypeError (code `ERR_OPTION`) for a wrong argument.
 */
export function costAnnotationOf(element: SchemaElement): CostAnnotation {
  return getOrCreate(annotations, element, () => ({
    weight: weightOf(element),
    listSize: listSizeOf(element),
  }));
}

const ofSchemas = new WeakMap<GraphQLSchema, WeakMap<object, CostAnnotation>>();

/** Returns the annotation of a field. The weight of an interface's field is the highest of all object types. */
export function fieldAnnotation(
  schema: GraphQLSchema,
  definition: GraphQLField<unknown, unknown>,
  parent: GraphQLCompositeType,
): CostAnnotation {
  if (!isAbstractType(parent)) return costAnnotationOf(definition);
  const ofFields = getOrCreate(ofSchemas, schema, () => new WeakMap());
  return getOrCreate(ofFields, definition, () =>
    highestAnnotation(definition, schema.getPossibleTypes(parent)),
  );
}

function highestAnnotation(
  definition: GraphQLField<unknown, unknown>,
  types: readonly GraphQLObjectType[],
): CostAnnotation {
  const all = [costAnnotationOf(definition)];
  for (const type of types) {
    const field = type.getFields()[definition.name];
    if (field !== undefined) all.push(costAnnotationOf(field));
  }
  const weights = all.flatMap(({ weight }) => (weight === undefined ? [] : [weight]));
  return {
    weight: weights.length === 0 ? undefined : Math.max(...weights),
    listSize: largestList(all.flatMap(({ listSize }) => (listSize === undefined ? [] : [listSize]))),
  };
}

/** Combines the directives of several types. Each of them may set the length of the list. */
function largestList(all: readonly ListSize[]): ListSize | undefined {
  if (all.length < 2) return all[0];
  const sizes = all.flatMap(({ assumedSize = [] }) => assumedSize);
  const paths = new Map(all.flatMap((each) => each.slicingArguments.map((path) => [path.join('.'), path])));
  return {
    assumedSize: sizes.length === 0 ? undefined : Math.max(...sizes),
    slicingArguments: [...paths.values()],
    sizedFields: all.flatMap(({ sizedFields }) => sizedFields),
    requireOneSlicingArgument: all.every((each) => each.requireOneSlicingArgument),
  };
}

/**
 * Checks all annotations of a schema.
 *
 * @throws TypeError (code `ERR_OPTION`) for a wrong argument.
 */
export function assertCostAnnotations(schema: GraphQLSchema): void {
  for (const type of Object.values(schema.getTypeMap())) {
    costAnnotationOf(type);
    if (!('getFields' in type)) continue;
    for (const field of Object.values(type.getFields())) {
      const { listSize } = costAnnotationOf(field);
      if (!('args' in field)) continue;
      field.args.forEach(costAnnotationOf);
      if (listSize !== undefined) assertNames(field, listSize);
    }
  }
}

/** Rejects names that `@listSize` does not find, which would set no size. */
function assertNames(
  field: GraphQLField<unknown, unknown>,
  { slicingArguments, sizedFields }: ListSize,
): void {
  const args = field.args.map(({ name }) => name);
  const type = getNamedType(field.type);
  const fields = 'getFields' in type ? Object.keys(type.getFields()) : sizedFields;
  for (const path of slicingArguments)
    if (!hasPath(field.args, path)) assertOneOf(field, 'slicingArguments', path.join('.'), args);
  for (const name of sizedFields) assertOneOf(field, 'sizedFields', name, fields);
}

function assertOneOf(
  { name: field }: SchemaElement,
  argument: string,
  name: string,
  known: readonly string[],
): void {
  if (known.includes(name)) return;
  const accepted = known.length === 0 ? 'none' : known.map((each) => `"${each}"`).join(', ');
  const message = `"${argument}" of @listSize of "${field}" contains "${name}"; accepted: ${accepted}`;
  throw optionError(GRAPHQL_OPTIONS, message);
}

function weightOf(element: SchemaElement): number | undefined {
  const { weight } = directiveOf(element, 'cost') ?? {};
  if (weight === undefined) return undefined;
  // The IBM specification has a string, Apollo's and Grafbase's directive a whole number.
  const value = isString(weight) && weight.trim() !== '' ? Number(weight) : weight;
  if (typeof value === 'number' && Number.isFinite(value)) return value;
  throw wrongDirective(
    GRAPHQL_OPTIONS,
    `@cost of "${element.name}"`,
    'weight',
    'a number, or a string with a number',
  );
}

function listSizeOf(element: SchemaElement): ListSize | undefined {
  const given = directiveOf(element, 'listSize');
  if (given === undefined) return undefined;
  const { assumedSize, slicingArguments, sizedFields, requireOneSlicingArgument } = given;
  const fail = (name: string, accepted: string): TypeError =>
    wrongDirective(GRAPHQL_OPTIONS, `@listSize of "${element.name}"`, name, accepted);
  const isNames = isListOf(isString);
  if (isGiven(assumedSize) && !isCount(assumedSize)) throw fail('assumedSize', 'a whole number from 0');
  if (isGiven(slicingArguments) && !isNames(slicingArguments)) {
    throw fail('slicingArguments', 'a list of names of arguments');
  }
  if (isGiven(sizedFields) && !isNames(sizedFields)) throw fail('sizedFields', 'a list of names of fields');
  return {
    assumedSize: (assumedSize as number | null | undefined) ?? undefined,
    slicingArguments: ((slicingArguments ?? []) as string[]).map((path) => path.split('.')),
    sizedFields: (sizedFields ?? []) as string[],
    requireOneSlicingArgument: requireOneSlicingArgument !== false,
  };
}

const isGiven = (value: unknown): boolean => value !== undefined && value !== null;

/** Returns the arguments of a directive; undefined without the directive. */
function directiveOf(element: SchemaElement, name: string): DirectiveArguments | undefined {
  const [given] = directivesOf(element, name);
  return isObject(given) ? given : undefined;
}
