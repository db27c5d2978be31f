import { createHash } from 'node:crypto';
import {
  type GraphQLArgument,
  type GraphQLField,
  type GraphQLInputField,
  type GraphQLNamedType,
  type GraphQLObjectType,
  type GraphQLSchema,
  getNamedType,
  isAbstractType,
  isInterfaceType,
  isObjectType,
} from 'graphql';
import { directivesOf, elementsOf, type SchemaElement, schemaElement } from '../execution/directives.ts';
import { closest, optionError } from '../options/rules.ts';
import { AUTH_OPTIONS } from '../options/scopes.ts';
import { isObject, isString } from '../options/values.ts';
import { DIRECTIVES, NAMES, type Name } from './directives.ts';

/** One directive's condition. Equal ones of a schema are one object, so that sets compare them by identity. */
export interface Condition {
  readonly kind: 'authenticated' | 'scopes' | 'policies';
  /** One of these lists has to be held completely; `@authenticated` has none. */
  readonly anyOf: readonly (readonly string[])[];
}

type Field = GraphQLField<unknown, unknown>;
type Conditions = readonly Condition[];

const NONE: Conditions = [];
const known = new WeakMap<GraphQLSchema, SchemaRequirements>();

/**
 * Returns the requirements of a schema.
 *
 * @throws TypeError (code `ERR_OPTION`) for a directive that is misspelt, misplaced or has wrong arguments.
 */
export function requirementsOf(schema: GraphQLSchema): SchemaRequirements {
  let requirements = known.get(schema);
  if (requirements === undefined) {
    requirements = new SchemaRequirements(schema);
    known.set(schema, requirements);
  }
  return requirements;
}

/**
 * What a schema requires of callers. A caller needs all conditions of an element. What an interface requires holds for
 * the types that implement it.
 */
export class SchemaRequirements {
  readonly #schema: GraphQLSchema;
  readonly #conditions = new Map<string, Condition>();
  readonly #ofElements = new Map<object, Conditions>();
  readonly #ofFields = new Map<Field, Conditions>();
  readonly #ofTypes = new Map<GraphQLNamedType, Conditions>();
  readonly #coordinates: (readonly [string, Conditions])[] = [];
  #id: string | undefined;

  constructor(schema: GraphQLSchema) {
    this.#schema = schema;
    for (const { coordinate, element, hasEffect } of elementsOf(schema)) {
      assertSpelling(coordinate, element, schema);
      if (hasEffect) this.#add(coordinate, element);
      else refuse(coordinate, element);
    }
    assertImports(schemaElement(schema));
    for (const type of Object.values(schema.getTypeMap()))
      if (isObjectType(type)) this.#inheritArguments(type);
  }

  /** Differs between schemas of which some element requires something else. */
  get id(): string {
    this.#id ??= createHash('sha256').update(JSON.stringify(this.#coordinates)).digest('base64url');
    return this.#id;
  }

  /** All different conditions of the schema. */
  get conditions(): Iterable<Condition> {
    return this.#conditions.values();
  }
  get isEmpty(): boolean {
    return this.#conditions.size === 0;
  }

  /** The own conditions of a field or input field, or those of an argument, also of interfaces. */
  ofElement(element: GraphQLArgument | GraphQLInputField | Field): Conditions {
    return this.#ofElements.get(element) ?? NONE;
  }

  /** The conditions of a field: its own, those of its values' type, and those of a root type that it belongs to. */
  ofField(parent: GraphQLObjectType, field: Field): Conditions {
    let conditions = this.#ofFields.get(field);
    if (conditions === undefined) {
      const inherited = parent.getInterfaces().flatMap((type) => type.getFields()[field.name] ?? []);
      conditions = union([
        ...(this.#isRoot(parent) ? [this.ofType(parent)] : []),
        ...[field, ...inherited].map((each) => this.#ofElements.get(each) ?? NONE),
        this.ofType(getNamedType(field.type)),
      ]);
      this.#ofFields.set(field, conditions);
    }
    return conditions;
  }

  /** The conditions of the values of a type. An abstract type has those that all its object types have. */
  ofType(type: GraphQLNamedType): Conditions {
    let conditions = this.#ofTypes.get(type);
    if (conditions === undefined) {
      const inherited = isObjectType(type) || isInterfaceType(type) ? type.getInterfaces() : [];
      const own = union([type, ...inherited].map((each) => this.#ofElements.get(each) ?? NONE));
      const objects = isAbstractType(type) ? this.#schema.getPossibleTypes(type) : [];
      conditions = union([own, intersection(objects.map((object) => this.ofType(object)))]);
      this.#ofTypes.set(type, conditions);
    }
    return conditions;
  }

  #isRoot(type: GraphQLObjectType): boolean {
    const schema = this.#schema;
    return [schema.getQueryType(), schema.getMutationType(), schema.getSubscriptionType()].includes(type);
  }

  #add(coordinate: string, element: SchemaElement): void {
    const conditions = union(
      NAMES.map((name) =>
        directivesOf(element, name).flatMap((given) => this.#conditionOf(coordinate, name, given) ?? []),
      ),
    );
    if (conditions.length === 0) return;
    this.#ofElements.set(element, conditions);
    this.#coordinates.push([coordinate, conditions]);
  }

  #inheritArguments(type: GraphQLObjectType): void {
    for (const { name, args } of Object.values(type.getFields())) {
      const fields = type.getInterfaces().flatMap((each) => each.getFields()[name] ?? []);
      for (const arg of args) {
        const same = fields.flatMap((field) => field.args.filter((each) => each.name === arg.name));
        const conditions = union([arg, ...same].map((each) => this.ofElement(each)));
        if (conditions.length > 0) this.#ofElements.set(arg, conditions);
      }
    }
  }

  #conditionOf(coordinate: string, name: Name, given: unknown): Condition | undefined {
    const argument = DIRECTIVES[name];
    if (argument === undefined) {
      // In code, `extensions: { authenticated: true }`.
      if (given === true || (isObject(given) && Object.keys(given).length === 0))
        return this.#intern({ kind: 'authenticated', anyOf: [] });
      throw wrongUse(coordinate, `@${name} has no arguments`);
    }
    const names = isObject(given) ? Object.keys(given) : [];
    const lists = isObject(given) && names.length === 1 ? listsOf(given[argument]) : undefined;
    if (lists !== undefined) return this.#intern({ kind: argument, anyOf: lists });
    throw wrongUse(
      coordinate,
      `@${name} needs the argument "${argument}": a list of lists of names that are not empty, such as [["a"], ["b", "c"]]`,
    );
  }

  #intern({ kind, anyOf }: Condition): Condition {
    const lists = anyOf.map((list) => [...new Set(list)].sort());
    const key = JSON.stringify([kind, [...new Set(lists.map((list) => JSON.stringify(list)))].sort()]);
    const condition = this.#conditions.get(key) ?? { kind, anyOf: lists };
    this.#conditions.set(key, condition);
    return condition;
  }
}

/** Coerces as GraphQL does, where one value may stand for a list. Undefined for anything else, and for empty lists. */
function listsOf(given: unknown): readonly (readonly string[])[] | undefined {
  const outer: readonly unknown[] = Array.isArray(given) ? given : [given];
  const lists = outer.map((inner) => (Array.isArray(inner) ? inner : [inner]) as unknown[]);
  const isValid = lists.length > 0 && lists.every((list) => list.length > 0 && list.every(isName));
  return isValid ? (lists as string[][]) : undefined;
}

const isName = (value: unknown): value is string => isString(value) && value !== '';

function refuse(coordinate: string, element: SchemaElement): void {
  const name = NAMES.find((each) => directivesOf(element, each).length > 0);
  if (name === undefined) return;
  throw wrongUse(
    coordinate,
    `@${name} has no effect here; accepted: on fields, arguments, input fields, objects, interfaces, scalars and enums`,
  );
}

/** Refuses directives of Apollo Federation that `@link` renames: they would require nothing. */
function assertImports(schema: SchemaElement): void {
  const links = directivesOf(schema, 'link').map((link) => (isObject(link) ? link['import'] : undefined));
  for (const entry of links.flat().filter(isObject)) {
    const name = NAMES.find((each) => entry['name'] === `@${each}`);
    if (name === undefined || entry['as'] === undefined || entry['as'] === entry['name']) continue;
    throw wrongUse('the schema', `@link imports @${name} as ${entry['as']}; import it with its own name`);
  }
}

/** Refuses a directive whose name is almost one of ours, unless the schema defines it. */
function assertSpelling(coordinate: string, element: SchemaElement, schema: GraphQLSchema): void {
  for (const name of usedNames(element)) {
    // The name that a directive has in a subgraph that does not import it.
    const own = NAMES.find((each) => name.endsWith(`__${each}`));
    if (own !== undefined)
      throw wrongUse(coordinate, `@${name} requires nothing; import "@${own}" with @link and use @${own}`);
    if ((NAMES as readonly string[]).includes(name) || schema.getDirective(name) != null) continue;
    const meant = closest(name, NAMES);
    if (meant !== undefined) throw wrongUse(coordinate, `@${name} is unknown; did you mean @${meant}?`);
  }
}

function usedNames({ astNode, extensionASTNodes, extensions }: SchemaElement): readonly string[] {
  const names = [astNode, ...(extensionASTNodes ?? [])].flatMap((node) =>
    (node?.directives ?? []).map(({ name }) => name.value),
  );
  if (!isObject(extensions)) return names;
  const { directives } = extensions;
  const listed: readonly unknown[] = Array.isArray(directives)
    ? directives.map((entry) => (isObject(entry) ? entry['name'] : undefined))
    : Object.keys(Object(directives));
  return [...names, ...listed.filter(isString), ...Object.keys(extensions)];
}

const wrongUse = (coordinate: string, problem: string): TypeError =>
  optionError(AUTH_OPTIONS, `the schema has a wrong directive on ${coordinate}: ${problem}`);

export const union = (lists: readonly Conditions[]): Conditions => [...new Set(lists.flat())];

/** The conditions that all lists have; none without lists. */
export const intersection = ([first = NONE, ...others]: readonly Conditions[]): Conditions =>
  first.filter((condition) => others.every((list) => list.includes(condition)));
