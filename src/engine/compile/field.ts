import type { FieldNode, GraphQLField, GraphQLObjectType, GraphQLSchema } from 'graphql';
import { SchemaMetaFieldDef, TypeMetaFieldDef, TypeNameMetaFieldDef } from 'graphql';
import type { Compiler } from '../complete/compiler.ts';
import { compilePosition } from '../complete/position.ts';
import { StaticText, writeStatic } from '../json/static-text.ts';
import type { FieldPlan, FieldRun } from '../run/plan.ts';
import { planField } from './field-plan.ts';
import { resolverField } from './field-run.ts';
import { leafPropertyField, propertyField } from './property-field.ts';

/** Compiles a field of an object type under one response key; undefined if the type has no such field. */
export function compileField(
  compiler: Compiler,
  parentType: GraphQLObjectType,
  key: string,
  nodes: readonly FieldNode[],
): FieldRun | undefined {
  const { program, snapshot } = compiler;
  const definition = definitionOf(program.schema, parentType, (nodes[0] as FieldNode).name.value);
  if (definition === undefined) return undefined;
  snapshot.addField(definition);
  const plan = planField(compiler, parentType, definition, { key, nodes });
  if (definition === TypeNameMetaFieldDef) return typeNameField(plan);
  const position = compilePosition(compiler, plan);
  if (plan.resolve !== undefined) return resolverField(plan, plan.resolve, position);
  return leafPropertyField(plan, position) ?? propertyField(plan, position);
}

function definitionOf(
  schema: GraphQLSchema,
  parentType: GraphQLObjectType,
  name: string,
): GraphQLField<unknown, unknown> | undefined {
  if (name === TypeNameMetaFieldDef.name) return TypeNameMetaFieldDef;
  if (schema.getQueryType() === parentType) {
    if (name === SchemaMetaFieldDef.name) return SchemaMetaFieldDef;
    if (name === TypeMetaFieldDef.name) return TypeMetaFieldDef;
  }
  return parentType.getFields()[name];
}

function typeNameField(plan: FieldPlan): FieldRun {
  const text = new StaticText(`,${JSON.stringify(plan.key)}:${JSON.stringify(plan.parentType.name)}`);
  return (ex) => writeStatic(ex, text);
}
