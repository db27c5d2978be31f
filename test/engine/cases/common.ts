import type { GraphQLSchema } from 'graphql';
import { echo, schemaOf } from './case.ts';

const SDL = /* GraphQL */ `
  scalar Any
  enum Colour { RED GREEN }
  input Range { from: Int! = 1, to: Int, label: String = "none", colours: [Colour!] = [RED] }
  input One @oneOf { id: ID, name: String }
  interface Being { name: String! }
  type Cat implements Being { name: String! meows: Boolean }
  type Dog implements Being { name: String! barks: Boolean }
  union Pet = Cat | Dog
  type Node { id: ID name: String! next: Node must: Node! list: [Node!] count: Int }
  type Query {
    text: String, other: String, int: Int, float: Float, bool: Boolean, id: ID, any: Any, colour: Colour
    strict: String!, node: Node, mustNode: Node!, nodes: [Node], strictNodes: [Node!]!, matrix: [[Int!]]
    numbers: [Int], strictNumbers: [Int!], pet: Pet, pets: [Pet], being: Being
    echo(a: Int, b: String = "default", range: Range, one: One, list: [Int], colour: Colour, any: Any): String
    needs(a: Int!): String
  }
  type Mutation { add(n: Int!): Int fail(n: Int!): Int! slow(n: Int!): Int node: Node }
  type Subscription { tick: Int }
`;

const isA = (name: string) => (value: { kind?: string }) => value.kind === name;

/** A schema with resolvers for `echo` only; all other values come from the root value. */
export const common: GraphQLSchema = schemaOf(
  SDL,
  { 'Query.echo': echo, 'Query.needs': echo },
  {
    Any: { serialize: (value: unknown): unknown => (value === 'void' ? undefined : value) },
    Cat: { isTypeOf: isA('Cat') },
    Dog: { isTypeOf: isA('Dog') },
  },
);
