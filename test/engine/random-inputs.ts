import {
  GraphQLBoolean,
  GraphQLEnumType,
  GraphQLFloat,
  GraphQLID,
  GraphQLInputObjectType,
  GraphQLInt,
  GraphQLList,
  GraphQLNonNull,
  type GraphQLOutputType,
  GraphQLScalarType,
  GraphQLString,
  Kind,
  valueFromASTUntyped,
} from 'graphql';
import type { Behaviour } from './behaviour.ts';
import { OPAQUE } from './leaf-values.ts';

/** The leaf types and the arguments of a random schema. */
interface Leaves {
  readonly types: readonly GraphQLOutputType[];
  readonly args: ReturnType<typeof argumentsOf>;
}

export function leavesOf(now: () => Behaviour): Leaves {
  const colour = new GraphQLEnumType({
    name: 'Colour',
    values: {
      RED: { value: 1 },
      GREEN: { value: 'g' },
      BLUE: {},
      OPAQUE: { value: OPAQUE },
      NONE: { value: Number.NaN },
      NIL: { value: null },
    },
  });
  const any = anyType(now);
  return {
    types: [GraphQLString, GraphQLInt, GraphQLFloat, GraphQLBoolean, GraphQLID, colour, any],
    args: argumentsOf(colour, any),
  };
}

/** A scalar that accepts every value and records the values that it parses. */
function anyType(now: () => Behaviour): GraphQLScalarType {
  return new GraphQLScalarType({
    name: 'Any',
    serialize: (value) => {
      // Values without JSON: the engine fails at their field, graphql-js leaves the field out.
      if (value === 'explode' || typeof value === 'function' || typeof value === 'symbol')
        throw new Error('not serializable');
      return value === 'nothing' ? undefined : value;
    },
    parseValue: (value) => {
      now().calls.push(`parse ${JSON.stringify(value)}`);
      if (value === 'refused') throw new Error('cannot be parsed');
      return value;
    },
    parseLiteral: (node, variables) => {
      now().calls.push(`parse literal ${node.kind}`);
      if (node.kind === Kind.FLOAT) throw new Error('no decimals');
      return valueFromASTUntyped(node, variables);
    },
  });
}

function argumentsOf(colour: GraphQLEnumType, any: GraphQLScalarType) {
  const input: GraphQLInputObjectType = new GraphQLInputObjectType({
    name: 'In',
    fields: () => ({
      n: { type: new GraphQLNonNull(GraphQLInt) },
      d: { type: GraphQLString, defaultValue: 'dflt' },
      l: { type: new GraphQLList(GraphQLInt) },
      s: { type: any },
      c: { type: new GraphQLNonNull(new GraphQLList(colour)), defaultValue: ['g', 1] },
      in: { type: input },
      one: { type: one },
    }),
  });
  const one: GraphQLInputObjectType = new GraphQLInputObjectType({
    name: 'One',
    isOneOf: true,
    fields: () => ({
      id: { type: GraphQLID },
      list: { type: new GraphQLList(new GraphQLNonNull(GraphQLString)) },
      in: { type: input },
    }),
  });
  return {
    i: { type: GraphQLInt, defaultValue: 7 },
    s: { type: GraphQLString },
    e: { type: colour },
    in: { type: input },
    one: { type: one },
    list: { type: new GraphQLList(new GraphQLNonNull(GraphQLFloat)), defaultValue: [0.5] },
    any: { type: any },
    must: { type: new GraphQLNonNull(GraphQLID), defaultValue: 'must' },
  };
}
