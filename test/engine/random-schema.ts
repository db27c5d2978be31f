import {
  type GraphQLFieldConfig,
  GraphQLID,
  GraphQLInterfaceType,
  GraphQLList,
  GraphQLNonNull,
  GraphQLObjectType,
  type GraphQLOutputType,
  type GraphQLResolveInfo,
  GraphQLSchema,
  GraphQLString,
  GraphQLUnionType,
} from 'graphql';
import type { ResolveMany } from '../../types/graphql.ts';
import { type Behaviour, resultOf } from './behaviour.ts';
import type { Choices } from './choices.ts';
import { leavesOf } from './random-inputs.ts';
import { typeCheck, typeName } from './type-checks.ts';

/** The ways to determine the object types of an interface or union. */
const STRATEGIES = ['typename', 'resolveType', 'asyncResolveType', 'isTypeOf', 'asyncIsTypeOf'] as const;

/** A random schema whose resolvers follow the current behaviour. `use` has to be called before each execution. */
export interface RandomSchema {
  readonly schema: GraphQLSchema;
  use(behaviour: Behaviour): void;
}

/** The resolvers of some fields: batch resolvers in some schemas or in all, or the same ones for one object each. */
export type Batching = 'sometimes' | 'always' | 'never';

export function randomSchema(choices: Choices, batching: Batching = 'sometimes'): RandomSchema {
  let behaviour: Behaviour;
  const now = (): Behaviour => behaviour;
  const { types: leaves, args } = leavesOf(now);
  const strategy = choices.pick(STRATEGIES);
  const objects: GraphQLObjectType[] = [];
  const abstract: GraphQLOutputType[] = [];
  const shapes = ['Query', 'Mutation', 'A', 'B', 'C'].map((name) => {
    const wraps = Array.from(
      { length: 7 },
      () => [choices.choose(12), choices.choose(20), choices.choose(4)] as const,
    );
    return { name, wraps, checks: name.length === 1 && choices.chance(60) };
  });
  // Not a choice of its own, which would change all cases that were found before.
  const sum = shapes.flatMap(({ wraps }) => wraps.flat()).reduce((all, each) => all + each, 0);
  const isBatched = batching === 'always' || (batching === 'sometimes' && sum % 5 === 1);
  const fieldsOf = (name: string) => () => {
    const shape = shapes.find((candidate) => candidate.name === name);
    const fields: Record<string, GraphQLFieldConfig<unknown, unknown>> = {};
    const types: readonly GraphQLOutputType[] = [...leaves, ...objects, ...abstract];
    shape?.wraps.forEach(([wrapping, type, resolving], index) => {
      const field = `f${index}`;
      fields[field] = {
        type: wrap(types[type % types.length] as GraphQLOutputType, wrapping),
        args: index % 2 === 0 ? args : {},
        ...(resolving < 2 ? {} : resolversOf(resolver(name, field, now, resolving === 3), isBatched)),
      };
    });
    return { ...fields, id: { type: GraphQLID }, name: { type: new GraphQLNonNull(GraphQLString) } };
  };
  const isTypeOf = (name: string) => typeCheck(name, now, strategy === 'asyncIsTypeOf');
  const checked = strategy === 'isTypeOf' || strategy === 'asyncIsTypeOf';
  const resolved = {
    ...(strategy === 'resolveType' ? { resolveType: typeName(now, false) } : {}),
    ...(strategy === 'asyncResolveType' ? { resolveType: typeName(now, true) } : {}),
  };
  const node = new GraphQLInterfaceType({ name: 'Node', fields: { id: { type: GraphQLID } }, ...resolved });
  const named = new GraphQLInterfaceType({
    name: 'Named',
    interfaces: [node],
    fields: { id: { type: GraphQLID }, name: { type: new GraphQLNonNull(GraphQLString) } },
    ...resolved,
  });
  for (const { name, checks } of shapes.slice(2)) {
    objects.push(
      new GraphQLObjectType({
        name,
        interfaces: name === 'C' ? [node] : [node, named],
        fields: fieldsOf(name),
        ...(checked || checks ? { isTypeOf: isTypeOf(name) } : {}),
      }),
    );
  }
  const either = new GraphQLUnionType({
    name: 'Either',
    types: objects.slice(0, 2),
    ...resolved,
  });
  abstract.push(node, either, named);
  const schema = new GraphQLSchema({
    query: new GraphQLObjectType({ name: 'Query', fields: fieldsOf('Query') }),
    mutation: new GraphQLObjectType({ name: 'Mutation', fields: fieldsOf('Mutation') }),
    types: [...objects, either],
    assumeValid: true,
  });
  return {
    schema,
    use: (next) => {
      behaviour = next;
    },
  };
}

function resolver(type: string, field: string, now: () => Behaviour, wantsInfo: boolean) {
  const resolve = (source: unknown, args: Record<string, unknown>, infoText: string): unknown => {
    const id = (source as { $id?: string } | undefined)?.$id ?? '';
    const behaviour = now();
    behaviour.calls.push(`${type}.${field} ${id} ${JSON.stringify(args)} ${infoText}`);
    const definition = behaviour.schema.getType(type) as GraphQLObjectType;
    return resultOf(
      behaviour,
      (definition.getFields()[field] as { type: GraphQLOutputType }).type,
      `${id}.${field}`,
    );
  };
  return wantsInfo
    ? (source: unknown, args: Record<string, unknown>, _context: unknown, info: GraphQLResolveInfo) =>
        resolve(source, args, textOf(info))
    : (source: unknown, args: Record<string, unknown>) => resolve(source, args, '');
}

/** The resolver, or one that calls it for each parent. An exception is the error of its parent. */
function resolversOf(
  resolve: ReturnType<typeof resolver>,
  isBatched: boolean,
): Pick<GraphQLFieldConfig<unknown, unknown>, 'resolve' | 'extensions'> {
  if (!isBatched) return { resolve };
  const resolveMany: ResolveMany = (parents, args, context, info) => {
    const values = parents.map((parent) => {
      try {
        return resolve(parent, args, context, info);
      } catch (reason) {
        return reason instanceof Error ? reason : Promise.reject(reason);
      }
    });
    return parents.length % 2 === 0 ? values : Promise.resolve(values);
  };
  return { extensions: { resolveMany } };
}

function textOf({ path, fieldNodes, returnType, variableValues, operation }: GraphQLResolveInfo): string {
  const nodes = fieldNodes.map(({ loc }) => loc?.start);
  return JSON.stringify([path, nodes, String(returnType), variableValues, operation.operation]);
}

function wrap(type: GraphQLOutputType, wrapping: number): GraphQLOutputType {
  const list = (inner: GraphQLOutputType) => new GraphQLList(inner);
  const some = (inner: GraphQLOutputType) => new GraphQLNonNull(inner as GraphQLNonNull<never>['ofType']);
  switch (wrapping) {
    case 0:
    case 1:
    case 2:
      return type;
    case 3:
    case 4:
      return some(type);
    case 5:
      return list(type);
    case 6:
    case 7:
      return list(some(type));
    case 8:
      return some(list(type));
    case 9:
      return some(list(some(type)));
    case 10:
      return list(list(some(type)));
    default:
      return list(some(list(type)));
  }
}
