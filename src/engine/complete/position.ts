import {
  type GraphQLNullableType,
  type GraphQLOutputType,
  isAbstractType,
  isLeafType,
  isListType,
  isNonNullType,
} from 'graphql';
import { NULL, type StaticText, writeStatic } from '../json/buffer.ts';
import type { Shape } from '../run/field-error.ts';
import type { Compiler, Complete, FieldPlan, Position } from '../run/plan.ts';
import { completeAbstract } from './abstract-type.ts';
import { completeLeaf, directWrite } from './leaf.ts';
import { completeList } from './list.ts';
import { completeObject } from './object-type.ts';

/** Compiles the completion of a field's values. */
export function compilePosition(compiler: Compiler, plan: FieldPlan): Position {
  return positionOf(compiler, plan, plan.type, plan.keyText);
}

/**
 * `keyText` is the key of a field. It is removed together with a value that has no JSON; list items have no
 * key.
 */
function positionOf(
  compiler: Compiler,
  plan: FieldPlan,
  type: GraphQLOutputType,
  keyText: StaticText | undefined,
): Position {
  const nullable = !isNonNullType(type);
  const inner = (isNonNullType(type) ? type.ofType : type) as GraphQLOutputType & GraphQLNullableType;
  const completeNonNull = completeType(compiler, plan, inner, keyText);
  const complete: Complete = (ex, value, path, info) => {
    if (value === null || value === undefined) {
      if (!nullable) throw nonNullError(plan);
      writeStatic(ex, NULL);
      return undefined;
    }
    if (value instanceof Error) throw value;
    return completeNonNull(ex, value, path, info);
  };
  return {
    field: plan,
    nullable,
    shape: shapeOf(inner),
    complete,
    direct: isLeafType(inner) ? directWrite(inner) : undefined,
  };
}

function completeType(
  compiler: Compiler,
  plan: FieldPlan,
  type: GraphQLOutputType & GraphQLNullableType,
  keyText: StaticText | undefined,
): Complete {
  if (isListType(type)) return completeList(plan, positionOf(compiler, plan, type.ofType, undefined));
  compiler.snapshot.addOutputType(type);
  if (isLeafType(type)) return completeLeaf(type, keyText);
  if (isAbstractType(type)) return completeAbstract(compiler, plan, type);
  return completeObject(compiler, plan, type);
}

function shapeOf(type: GraphQLOutputType): Shape {
  if (isListType(type)) return 'list';
  return isLeafType(type) ? 'leaf' : 'object';
}

function nonNullError({ parentType, name }: FieldPlan): Error {
  return new Error(`Cannot return null for non-nullable field ${parentType.name}.${name}.`);
}
