import type { FieldNode, GraphQLField, GraphQLObjectType, GraphQLSchema } from 'graphql';
import { SchemaMetaFieldDef, TypeMetaFieldDef, TypeNameMetaFieldDef } from 'graphql';
import { Fixed, writeFixed } from './fixed.ts';
import { makeInfo } from './info.ts';
import { type FieldPlan, type FieldRun, fieldPath, type Position } from './plan.ts';
import { planField } from './planning.ts';
import { fill, giveUp } from './positions.ts';
import type { Program } from './program.ts';
import { leafProperty, propertyField } from './properties.ts';
import { compilePosition } from './values.ts';

type Definition = GraphQLField<unknown, unknown>;

/** A field of an object type under one response key; undefined when the type has no such field. */
export function compileField(
  program: Program,
  parentType: GraphQLObjectType,
  key: string,
  nodes: readonly FieldNode[],
): FieldRun | undefined {
  const definition = definitionOf(program.schema, parentType, (nodes[0] as FieldNode).name.value);
  if (definition === undefined) return undefined;
  const plan = planField(program, parentType, definition, { key, nodes });
  if (definition === TypeNameMetaFieldDef) return typeName(plan);
  const position = compilePosition(program, plan, plan.type);
  if (plan.resolve !== undefined) return resolvedField(plan, plan.resolve, position);
  return leafProperty(plan, position) ?? propertyField(plan, position);
}

function definitionOf(
  schema: GraphQLSchema,
  parentType: GraphQLObjectType,
  name: string,
): Definition | undefined {
  if (name === TypeNameMetaFieldDef.name) return TypeNameMetaFieldDef;
  if (schema.getQueryType() === parentType) {
    if (name === SchemaMetaFieldDef.name) return SchemaMetaFieldDef;
    if (name === TypeMetaFieldDef.name) return TypeMetaFieldDef;
  }
  return parentType.getFields()[name];
}

function typeName(plan: FieldPlan): FieldRun {
  const text = new Fixed(`,${JSON.stringify(plan.key)}:${JSON.stringify(plan.parentType.name)}`);
  return (ex) => writeFixed(ex, text);
}

/** A field with a resolver: the schema's, or the `fieldResolver` option. */
function resolvedField(
  plan: FieldPlan,
  resolve: NonNullable<FieldPlan['resolve']>,
  position: Position,
): FieldRun {
  const { prefix, args, wantsInfo } = plan;
  return (ex, source, parent) => {
    const mark = ex.parts.length;
    const { segment } = ex;
    writeFixed(ex, prefix);
    const start = ex.pos;
    const path = fieldPath(plan, parent);
    try {
      const given = args(ex);
      // A resolver that does not declare `info` cannot tell that there is none.
      const info = wantsInfo ? makeInfo(ex, plan, path) : undefined;
      const value = resolve(source, given, ex.inputs.contextValue, info as never);
      fill(ex, position, value, path, info);
    } catch (caught) {
      giveUp(ex, caught, position, path, { mark, segment, start });
    }
  };
}
