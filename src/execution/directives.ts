import {
  type ConstDirectiveNode,
  type GraphQLArgument,
  type GraphQLField,
  type GraphQLInputField,
  type GraphQLSchema,
  getNamedType,
  isEnumType,
  isInputObjectType,
  isIntrospectionType,
  isScalarType,
  isUnionType,
  valueFromASTUntyped,
} from 'graphql';
import { type OptionScope, optionError } from '../options/rules.ts';
import { isObject } from '../options/values.ts';

/** An element of a schema that may have directives: a type, field, argument or input field. */
export interface SchemaElement {
  readonly name: string;
  readonly astNode?: WithDirectives | null | undefined;
  readonly extensionASTNodes?: readonly WithDirectives[] | null | undefined;
  readonly extensions?: unknown;
}

interface WithDirectives {
  readonly directives?: readonly ConstDirectiveNode[] | undefined;
}

/** The arguments of one use of a directive. Values from `extensions` are not checked. */
export type DirectiveArguments = Readonly<Record<string, unknown>>;

/**
 * Returns the arguments of each use of a directive: in SDL, first of the element and then of its extensions, or
 * for schemas that are created in code in `extensions.directives` and in the member of `extensions` with the
 * name of the directive. A member of `extensions` may be of any type.
 */
export function directivesOf(
  { astNode, extensionASTNodes, extensions }: SchemaElement,
  name: string,
): readonly unknown[] {
  const uses: unknown[] = [];
  for (const node of [astNode, ...(extensionASTNodes ?? [])]) {
    for (const directive of node?.directives ?? []) {
      if (directive.name.value === name) uses.push(argumentsOf(directive));
    }
  }
  if (!isObject(extensions)) return uses;
  uses.push(...listedIn(extensions['directives'], name));
  if (extensions[name] !== undefined) uses.push(extensions[name]);
  return uses;
}

/** In SDL `null` means the same as no argument. */
function argumentsOf({ arguments: nodes = [] }: ConstDirectiveNode): DirectiveArguments {
  return Object.fromEntries(
    nodes.map(({ name, value }) => [name.value, valueFromASTUntyped(value) ?? undefined]),
  );
}

/** Reads both forms of @graphql-tools/utils: a list of names and arguments, or an object by name. */
function listedIn(directives: unknown, name: string): readonly unknown[] {
  if (Array.isArray(directives)) {
    return directives
      .filter((entry) => isObject(entry) && entry['name'] === name)
      .map(({ args }) => args ?? {});
  }
  const given = isObject(directives) ? directives[name] : undefined;
  return given === undefined ? [] : [given].flat();
}

/** Whether the arguments of a field have a path, such as "input.email". The values of a scalar may have any. */
export function hasPath(
  inputs: readonly (GraphQLArgument | GraphQLInputField)[],
  [name, ...path]: readonly string[],
): boolean {
  const input = inputs.find((each) => each.name === name);
  if (input === undefined || path.length === 0) return input !== undefined;
  const type = getNamedType(input.type);
  return isInputObjectType(type) ? hasPath(Object.values(type.getFields()), path) : isScalarType(type);
}

/** Creates the TypeError for an argument of a directive such as `@cost of "a"`. */
export const wrongDirective = (
  scope: OptionScope,
  directive: string,
  argument: string,
  accepted: string,
): TypeError =>
  optionError(scope, `the argument "${argument}" of ${directive} has a wrong value; accepted: ${accepted}`);

export const schemaElement = ({ astNode, extensionASTNodes, extensions }: GraphQLSchema): SchemaElement => ({
  name: 'schema',
  astNode,
  extensionASTNodes,
  extensions,
});

/** An element of a schema that may have directives. */
interface PlacedElement {
  readonly coordinate: string;
  readonly element: SchemaElement;
  /** Whether a directive of it says something about executions. */
  readonly hasEffect: boolean;
  /** The element if it is a field of an object or interface. */
  readonly field?: GraphQLField<unknown, unknown>;
}

export function* elementsOf(schema: GraphQLSchema): Generator<PlacedElement> {
  yield { coordinate: 'the schema', element: schemaElement(schema), hasEffect: false };
  for (const { name, args } of schema.getDirectives())
    for (const element of args) yield { coordinate: `@${name}(${element.name}:)`, element, hasEffect: false };
  for (const type of Object.values(schema.getTypeMap())) {
    if (isIntrospectionType(type)) continue;
    const hasEffect = !isUnionType(type) && !isInputObjectType(type);
    yield { coordinate: type.name, element: type, hasEffect };
    for (const element of isEnumType(type) ? type.getValues() : [])
      yield { coordinate: `${type.name}.${element.name}`, element, hasEffect: false };
    for (const element of 'getFields' in type ? Object.values(type.getFields()) : []) {
      const coordinate = `${type.name}.${element.name}`;
      yield { coordinate, element, hasEffect: true, ...('args' in element && { field: element }) };
      for (const arg of 'args' in element ? element.args : [])
        yield { coordinate: `${coordinate}(${arg.name}:)`, element: arg, hasEffect: true };
    }
  }
}

/** The first use of some directives in a schema, such as "@policy on Query.a"; undefined if there is none. */
export function findDirective(schema: GraphQLSchema, names: readonly string[]): string | undefined {
  for (const { coordinate, element } of elementsOf(schema)) {
    const name = names.find((each) => directivesOf(element, each).length > 0);
    if (name !== undefined) return `@${name} on ${coordinate}`;
  }
  return undefined;
}
