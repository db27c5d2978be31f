import {
  type GraphQLNullableType,
  type GraphQLOutputType,
  isAbstractType,
  isLeafType,
  isListType,
  isNonNullType,
} from 'graphql';
import { completeAbstract } from './abstract.ts';
import { NULL, writeFixed } from './fixed.ts';
import { completeObject } from './instances.ts';
import { completeLeaf, directWrite } from './leaves.ts';
import { completeList } from './lists.ts';
import type { Complete, FieldPlan, Position, Shape } from './plan.ts';
import type { Program } from './program.ts';

/** How values at a field, or at the items of its lists, are completed. */
export function compilePosition(
  program: Program,
  plan: FieldPlan,
  type: GraphQLOutputType,
  inList = false,
): Position {
  const nullable = !isNonNullType(type);
  const inner = (isNonNullType(type) ? type.ofType : type) as GraphQLOutputType & GraphQLNullableType;
  const base = completeType(program, plan, inner, inList);
  const complete: Complete = (ex, value, path, info) => {
    if (value === null || value === undefined) {
      if (!nullable) throw nullError(plan);
      writeFixed(ex, NULL);
      return undefined;
    }
    if (value instanceof Error) throw value;
    return base(ex, value, path, info);
  };
  return {
    plan,
    nullable,
    shape: shapeOf(inner),
    complete,
    direct: isLeafType(inner) ? directWrite(inner) : undefined,
  };
}

function completeType(
  program: Program,
  plan: FieldPlan,
  type: GraphQLOutputType & GraphQLNullableType,
  inList: boolean,
): Complete {
  if (isListType(type)) return completeList(plan, compilePosition(program, plan, type.ofType, true));
  if (isLeafType(type)) return completeLeaf(type, inList, plan);
  if (isAbstractType(type)) return completeAbstract(program, plan, type);
  return completeObject(program, plan, type);
}

function shapeOf(type: GraphQLOutputType): Shape {
  if (isListType(type)) return 'list';
  return isLeafType(type) ? 'leaf' : 'object';
}

function nullError({ parentType, name }: FieldPlan): Error {
  return new Error(`Cannot return null for non-nullable field ${parentType.name}.${name}.`);
}
