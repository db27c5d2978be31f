/** @tags graphql slow */
import express from 'express';
import fc from 'fast-check';
import {
  type ASTNode,
  buildSchema,
  type GraphQLInputType,
  type GraphQLNamedType,
  type GraphQLOutputType,
  getNamedType,
  isEnumType,
  isInputObjectType,
  isListType,
  isNonNullType,
  isObjectType,
  isUnionType,
  parse,
  parseValue,
  TypeInfo,
  type ValueNode,
  validate,
  visit,
  visitWithTypeInfo,
} from 'graphql';
import { graphqlHTTP } from '../../middleware/graphql.ts';
import type { UsageReport } from '../../types/usage.ts';
import { run } from '../graphql/server.ts';

const schema = buildSchema(`
  directive @tag(name: String, role: Role) repeatable on FIELD | QUERY | FRAGMENT_SPREAD | INLINE_FRAGMENT
  scalar Json
  enum Role { ADMIN USER GUEST @deprecated }
  input Page { first: Int, after: String, roles: [Role!], not: Page, any: [Page!], json: Json }
  input Filter { name: String, page: Page, role: Role = USER, old: Boolean @deprecated }
  interface Node { id: ID!, self(page: Page): Node }
  type User implements Node { id: ID!, self(page: Page): Node, name(upper: Boolean): String, role: Role, friends(filter: Filter!, roles: [[Role]]): [User!] }
  type Post implements Node { id: ID!, self(page: Page): Node, title: String @deprecated, author: User, related(filters: [Filter]): [Thing] }
  union Thing = User | Post
  type Query { user(id: ID, role: Role): User, node(page: Page): Node, things(filter: Filter, json: Json): [Thing!], post: Post }
  type Mutation { add(page: [Page!]!): Post }
`);

/** Makes decisions from a list of random numbers. */
class Choices {
  readonly #numbers: readonly number[];
  #next = 0;
  constructor(numbers: readonly number[]) {
    this.#numbers = numbers;
  }
  upTo(count: number): number {
    return (this.#numbers[this.#next++ % this.#numbers.length] ?? 0) % count;
  }
  oneIn(count: number): boolean {
    return this.upTo(count) === 0;
  }
}

/** A random operation with its variables, as a client writes it. */
class Generator {
  readonly variables: Record<string, unknown> = {};
  readonly #definitions: string[] = [];
  readonly #fragments: string[] = [];
  readonly #pick: Choices;
  #keys = 0;

  constructor(pick: Choices) {
    this.#pick = pick;
  }

  document(): string {
    const kind = this.#pick.oneIn(4) ? 'mutation' : 'query';
    const root = kind === 'query' ? schema.getQueryType() : schema.getMutationType();
    const directive = kind === 'query' ? this.#directive() : '';
    const fields = this.#selection(root as GraphQLNamedType, 0);
    const definitions = this.#definitions.length === 0 ? '' : `(${this.#definitions.join(' ')})`;
    return [`${kind} Op${definitions} ${directive}${fields}`, ...this.#fragments].join('\n');
  }

  #directive(): string {
    if (!this.#pick.oneIn(5)) return '';
    return this.#pick.oneIn(2) ? '@tag(name: "x", role: GUEST) ' : '@tag ';
  }

  #selection(type: GraphQLNamedType, depth: number): string {
    const parts: string[] = [this.#pick.oneIn(3) ? '__typename' : `key${this.#keys++}: __typename`];
    const fields = 'getFields' in type && !isInputObjectType(type) ? Object.values(type.getFields()) : [];
    for (const field of fields) {
      if (this.#pick.oneIn(2)) parts.push(this.#field(field, depth));
    }
    if (depth < 4 && this.#pick.oneIn(2)) {
      const types = isUnionType(type) || type.name === 'Node' ? ['User', 'Post'] : [type.name];
      const name = types[this.#pick.upTo(types.length)] as string;
      const inner = this.#selection(schema.getType(name) as GraphQLNamedType, depth + 1);
      if (this.#pick.oneIn(2)) parts.push(`... on ${name} ${this.#directive()}${inner}`);
      else {
        const fragment = `F${this.#keys++}`;
        this.#fragments.push(`fragment ${fragment} on ${name} ${inner}`);
        parts.push(`...${fragment} ${this.#directive()}`);
      }
    }
    return `{ ${parts.join(' ')} }`;
  }

  #field(
    field: {
      readonly name: string;
      readonly type: GraphQLOutputType;
      readonly args: readonly { readonly name: string; readonly type: GraphQLInputType }[];
    },
    depth: number,
  ): string {
    const type = getNamedType(field.type);
    const hasFields = isObjectType(type) || isUnionType(type) || type.name === 'Node';
    if (hasFields && depth >= 4) return `key${this.#keys++}: __typename`;
    const args = field.args.flatMap(({ name, type: given }) => {
      if (!isNonNullType(given) && this.#pick.oneIn(2)) return [];
      return [`${name}: ${this.#argument(given)}`];
    });
    const list = args.length === 0 ? '' : `(${args.join(' ')})`;
    const selection = hasFields ? this.#selection(type, depth + 1) : '';
    return `key${this.#keys++}: ${field.name}${list} ${this.#directive()}${selection}`;
  }

  #argument(type: GraphQLInputType): string {
    const value = this.#value(type, 0);
    if (this.#pick.oneIn(2)) return literal(value, type);
    const name = `v${this.#definitions.length}`;
    const hasDefault = !isNonNullType(type) && this.#pick.oneIn(3);
    this.#definitions.push(
      `$${name}: ${type}${hasDefault ? ` = ${literal(this.#value(type, 0), type)}` : ''}`,
    );
    if (!hasDefault || this.#pick.oneIn(2)) this.variables[name] = value;
    return `$${name}`;
  }

  #value(type: GraphQLInputType, depth: number): unknown {
    if (isNonNullType(type)) return this.#value(type.ofType, depth);
    if (isListType(type)) {
      // A single value instead of a list is coerced.
      if (this.#pick.oneIn(3)) return this.#value(type.ofType, depth);
      return Array.from({ length: this.#pick.upTo(3) }, () => this.#value(type.ofType, depth));
    }
    if (isEnumType(type)) return type.getValues()[this.#pick.upTo(3)]?.name;
    if (!isInputObjectType(type)) {
      return { ID: 'a', String: 'ADMIN', Int: 3, Boolean: true, Json: { role: 'ADMIN', first: 1 } }[
        type.name
      ];
    }
    const fields = Object.values(type.getFields()).filter(() => depth < 3 && this.#pick.oneIn(3));
    return Object.fromEntries(fields.map((field) => [field.name, this.#value(field.type, depth + 1)]));
  }
}

function literal(value: unknown, type: GraphQLInputType): string {
  if (isNonNullType(type)) return literal(value, type.ofType);
  const inner = isListType(type) ? type.ofType : type;
  if (Array.isArray(value))
    return `[${value.map((item) => literal(item, inner as GraphQLInputType)).join(' ')}]`;
  const named = getNamedType(type);
  if (isEnumType(named)) return String(value);
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  const fields = isInputObjectType(named) ? named.getFields() : {};
  const members = Object.entries(value).map(([name, member]) => {
    const memberType = fields[name]?.type;
    return `${name}: ${memberType === undefined ? JSON.stringify(member) : literal(member, memberType)}`;
  });
  return `{ ${members.join(' ')} }`;
}

/** What graphql-js finds in the document, with the values of the variables in the place of the variables. */
function expected(text: string, variables: Readonly<Record<string, unknown>>): string[] {
  const document = parse(text);
  const found = new Set<string>();
  const collect = (node: ASTNode): void => {
    const info = new TypeInfo(schema);
    visit(
      node,
      visitWithTypeInfo(info, {
        enter(each) {
          const parent = info.getParentType()?.name;
          if (each.kind === 'Field' && each.name.value !== '__typename')
            found.add(`${parent}.${each.name.value}`);
          if (each.kind === 'Directive') found.add(`@${each.name.value}`);
          if (each.kind === 'NamedType' && !['ID', 'String', 'Int', 'Boolean'].includes(each.name.value)) {
            found.add(each.name.value);
          }
          if (each.kind === 'Argument') {
            const directive = info.getDirective();
            const owner = directive == null ? `${parent}.${info.getFieldDef()?.name}` : `@${directive.name}`;
            found.add(`${owner}(${each.name.value}:)`);
          }
          const input = getNamedType(info.getParentInputType());
          if (each.kind === 'ObjectField' && isInputObjectType(input))
            found.add(`${input.name}.${each.name.value}`);
          const type = getNamedType(info.getInputType());
          if (each.kind === 'EnumValue' && isEnumType(type)) found.add(`${type.name}.${each.value}`);
        },
      }),
    );
  };
  collect(document);
  const types = new Map<string, GraphQLInputType>();
  const info = new TypeInfo(schema);
  visit(
    document,
    visitWithTypeInfo(info, {
      Variable: ({ name }) => void types.set(name.value, info.getInputType() as GraphQLInputType),
    }),
  );
  const inlined = visit(document, {
    VariableDefinition: () => null,
    Variable: ({ name }): ValueNode => {
      const value = variables[name.value];
      const type = types.get(name.value) as GraphQLInputType;
      const source = value === undefined ? 'null' : literal(value, type);
      return parseValue(source);
    },
  });
  collect(inlined);
  return [...found].sort();
}

const countsOf = ({ days }: UsageReport): Record<string, number> =>
  Object.assign(
    {},
    ...Object.values(days).flatMap((clients) => Object.values(clients).map((own) => own.coordinates)),
  );

it('the counts of random operations and variables are those of visitWithTypeInfo', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.array(fc.nat({ max: 1000 }), { minLength: 20, maxLength: 60 }), {
        minLength: 1,
        maxLength: 5,
      }),
      fc.constantFrom('compiled' as const, 'graphql-js' as const),
      async (seeds, engine) => {
        const handler = graphqlHTTP(schema, { usage: {}, engine, onError: false });
        const server = await run(express().use('/graphql', handler));
        const counts: Record<string, number> = {};
        for (const seed of seeds) {
          const generator = new Generator(new Choices(seed));
          const query = generator.document();
          expect(validate(schema, parse(query)).map(String)).toEqual([]);
          for (const coordinate of expected(query, generator.variables)) {
            counts[coordinate] = (counts[coordinate] ?? 0) + 2;
          }
          for (let turn = 0; turn < 2; turn++) {
            const response = await fetch(server.url, {
              method: 'POST',
              headers: { 'content-type': 'application/json' },
              body: JSON.stringify({ query, variables: generator.variables }),
            });
            expect(response.status).toBe(200);
            await response.text();
          }
        }
        expect(countsOf(await handler.usage.report())).toEqual(counts);
      },
    ),
    { numRuns: 60 },
  );
}, 120_000);
