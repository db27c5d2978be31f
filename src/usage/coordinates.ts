import {
  type ASTNode,
  type FragmentDefinitionNode,
  type GraphQLArgument,
  type GraphQLEnumValue,
  type GraphQLField,
  type GraphQLInputField,
  type GraphQLNamedType,
  type GraphQLSchema,
  getNamedType,
  isEnumType,
  isInputObjectType,
  isInputType,
  isSpecifiedScalarType,
  type OperationDefinitionNode,
  TypeInfo,
  typeFromAST,
  visit,
  visitWithTypeInfo,
} from 'graphql';
import type { ValidatedOperation } from '../execution/types.ts';
import { getOrCreate, isObject } from '../options/rules.ts';

/** A coordinate of a schema, such as `User.email` or `Query.users(first:)`. */
export interface Coordinate {
  readonly text: string;
  readonly isDeprecated: boolean;
}

type Element = Pick<
  GraphQLField<unknown, unknown> | GraphQLArgument | GraphQLInputField | GraphQLEnumValue,
  'deprecationReason'
>;

/** A named type whose values in variables have coordinates, with those of its fields or values. */
interface InputType {
  readonly members: ReadonlyMap<string, InputMember>;
  readonly isEnum: boolean;
}

interface InputMember {
  readonly coordinate: Coordinate;
  /** Undefined if its values have no coordinates. */
  readonly type: InputType | undefined;
}

/** The variables of an operation whose values have coordinates, by name. */
export type InputVariables = readonly (readonly [name: string, type: InputType])[];

/** The coordinates of one schema. Each is one object, however many documents contain it. */
export class SchemaCoordinates {
  readonly #schema: GraphQLSchema;
  readonly #byText = new Map<string, Coordinate>();
  readonly #inputTypes = new Map<GraphQLNamedType, InputType>();

  constructor(schema: GraphQLSchema) {
    this.#schema = schema;
  }

  #of(text: string, element?: Element): Coordinate {
    const isDeprecated = element?.deprecationReason != null;
    return getOrCreate(this.#byText, text, () => ({ text, isDeprecated }));
  }

  /**
   * Returns what an operation and its fragments name: fields of the types that the document names, also abstract ones;
   * arguments, input fields and enum values that it gives; directives; types of conditions and variables. Without
   * introspection.
   */
  ofOperation({ operation, document }: ValidatedOperation): ReadonlySet<Coordinate> {
    const found = new Set<Coordinate>();
    const definitions: (OperationDefinitionNode | FragmentDefinitionNode)[] = [operation];
    for (const definition of definitions) {
      this.#visit(definition, found, (name) => {
        const fragment = document.definitions.find(
          (node) => node.kind === 'FragmentDefinition' && node.name.value === name,
        ) as FragmentDefinitionNode | undefined;
        if (fragment !== undefined && !definitions.includes(fragment)) definitions.push(fragment);
      });
    }
    return found;
  }

  #visit(definition: ASTNode, found: Set<Coordinate>, onSpread: (name: string) => void): void {
    const info = new TypeInfo(this.#schema);
    const add = (text: string, element?: Element | null): void =>
      void found.add(this.#of(text, element ?? undefined));
    visit(
      definition,
      visitWithTypeInfo(info, {
        Field: ({ name }) => {
          if (name.value.startsWith('__')) return false;
          add(`${info.getParentType()?.name}.${name.value}`, info.getFieldDef());
          return undefined;
        },
        Argument: ({ name }) => {
          const directive = info.getDirective();
          const owner = directive
            ? `@${directive.name}`
            : `${info.getParentType()?.name}.${info.getFieldDef()?.name}`;
          add(`${owner}(${name.value}:)`, info.getArgument());
        },
        Directive: ({ name }) => add(`@${name.value}`),
        ObjectField: ({ name }) => {
          const parent = getNamedType(info.getParentInputType());
          if (isInputObjectType(parent)) add(`${parent.name}.${name.value}`, parent.getFields()[name.value]);
        },
        EnumValue: ({ value }) => {
          const type = getNamedType(info.getInputType());
          if (isEnumType(type)) add(`${type.name}.${value}`, type.getValue(value));
        },
        NamedType: ({ name }) => {
          const type = this.#schema.getType(name.value);
          if (type !== undefined && !isSpecifiedScalarType(type)) add(name.value);
        },
        FragmentSpread: ({ name }) => onSpread(name.value),
      }),
    );
  }

  /** Returns the variables whose values have coordinates; undefined if there are none. */
  variablesOf({ variableDefinitions = [] }: OperationDefinitionNode): InputVariables | undefined {
    const variables = variableDefinitions.flatMap(({ variable, type }) => {
      // The overloads of `typeFromAST` have no common one.
      const given = typeFromAST(this.#schema, type as Parameters<typeof typeFromAST>[1]);
      const known = isInputType(given) ? this.#inputType(getNamedType(given)) : undefined;
      return known === undefined ? [] : [[variable.name.value, known] as const];
    });
    return variables.length === 0 ? undefined : variables;
  }

  #inputType(type: GraphQLNamedType): InputType | undefined {
    const known = this.#inputTypes.get(type);
    if (known !== undefined) return known;
    const members = new Map<string, InputMember>();
    const isEnum = isEnumType(type);
    const input = { members, isEnum };
    if (isEnum) {
      this.#inputTypes.set(type, input);
      for (const value of type.getValues()) {
        members.set(value.name, {
          coordinate: this.#of(`${type.name}.${value.name}`, value),
          type: undefined,
        });
      }
      return input;
    }
    if (!isInputObjectType(type)) return undefined;
    // Before its fields, which may have the same type.
    this.#inputTypes.set(type, input);
    for (const field of Object.values(type.getFields())) {
      const coordinate = this.#of(`${type.name}.${field.name}`, field);
      members.set(field.name, { coordinate, type: this.#inputType(getNamedType(field.type)) });
    }
    return input;
  }
}

/** Adds the input fields and enum values in the variables of a request. Reads names of the schema only. */
export function addInputs(
  types: InputVariables,
  variables: Readonly<Record<string, unknown>>,
  found: Set<Coordinate>,
): void {
  const pending: [InputType, unknown][] = [];
  for (const [name, type] of types) {
    if (Object.hasOwn(variables, name)) pending.push([type, variables[name]]);
  }
  // Not recursive: clients choose the depth.
  for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
    const [type, value] = next;
    if (Array.isArray(value)) {
      for (const item of value) pending.push([type, item]);
    } else if (type.isEnum) {
      const member = typeof value === 'string' ? type.members.get(value) : undefined;
      if (member !== undefined) found.add(member.coordinate);
    } else if (isObject(value)) {
      for (const name of Object.keys(value)) {
        const member = type.members.get(name);
        if (member === undefined || value[name] === undefined) continue;
        found.add(member.coordinate);
        if (member.type !== undefined) pending.push([member.type, value[name]]);
      }
    }
  }
}
