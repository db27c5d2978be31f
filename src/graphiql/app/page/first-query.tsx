import { useGraphiQL } from '@graphiql/react';
import {
  type GraphQLField,
  type GraphQLObjectType,
  type GraphQLSchema,
  getNamedType,
  isInterfaceType,
  isLeafType,
  isObjectType,
  isRequiredArgument,
} from 'graphql';
import { useEffect, useRef } from 'react';
import { config, linked } from '../settings.ts';

const UPSTREAM_TEXT = '# Welcome to GraphiQL';
const MAX_FIELDS = 5;

/** Replaces GraphiQL's long welcome text on the first visit with a query for the schema. */
export function FirstQuery() {
  const editor = useGraphiQL((state) => state.queryEditor);
  const schema = useGraphiQL((state) => state.schema);
  const done = useRef(false);
  useEffect(() => {
    if (done.current || editor === undefined || !schema) return;
    done.current = true;
    if (config.defaultQuery !== undefined || linked.query !== undefined) return;
    if (!editor.getValue().startsWith(UPSTREAM_TEXT)) return;
    editor.setValue(firstQuery(schema));
  }, [editor, schema]);
  return null;
}

function firstQuery(schema: GraphQLSchema): string {
  const type = schema.getQueryType();
  const fields = type ? callable(type) : [];
  const selection =
    fields.map((field) => select(field)).find((found) => found !== undefined) ?? '  __typename';
  return [
    '# A first query from your schema.',
    '# Ctrl-Enter runs it, Ctrl-Space completes names.',
    '# The documentation is on the left.',
    '',
    '{',
    selection,
    '}',
    '',
  ].join('\n');
}

/** Selects a field with the leaf fields of its type; undefined if the type has no such fields. */
function select({ name, type }: GraphQLField<unknown, unknown>): string | undefined {
  const named = getNamedType(type);
  if (isLeafType(named)) return `  ${name}`;
  if (!isObjectType(named) && !isInterfaceType(named)) return undefined;
  const leaves = callable(named).filter((field) => isLeafType(getNamedType(field.type)));
  if (leaves.length === 0) return undefined;
  const lines = leaves.slice(0, MAX_FIELDS).map((field) => `    ${field.name}`);
  return [`  ${name} {`, ...lines, '  }'].join('\n');
}

function callable(type: Pick<GraphQLObjectType, 'getFields'>): GraphQLField<unknown, unknown>[] {
  return Object.values(type.getFields()).filter(({ args }) => !args.some(isRequiredArgument));
}
