import {
  type GraphQLNamedType,
  type GraphQLSchema,
  isInterfaceType,
  isIntrospectionType,
  isObjectType,
  printType,
} from 'graphql';
import type { McpTool } from '../../types/mcp.ts';
import { getOrCreate } from '../options/rules.ts';

const annotations = { readOnlyHint: true, destructiveHint: false, idempotentHint: true };

/** The tools of the option `search`, as agents see them. */
export const SEARCH_TOOLS: readonly McpTool[] = [
  {
    name: 'search_schema',
    title: 'Search the schema',
    description: 'Finds fields and types of the GraphQL schema by words of their names and descriptions.',
    inputSchema: {
      type: 'object',
      properties: { words: { type: 'string', description: 'Such as "customer email"' } },
      required: ['words'],
      additionalProperties: false,
    },
    annotations,
  },
  {
    name: 'describe_type',
    title: 'Describe a type',
    description: 'Shows a type of the GraphQL schema with its fields, in the schema definition language.',
    inputSchema: {
      type: 'object',
      properties: { type: { type: 'string', description: 'The name of the type' } },
      required: ['type'],
      additionalProperties: false,
    },
    annotations,
  },
];

const textOf = (argument: unknown): string => (typeof argument === 'string' ? argument : '');

const MAX_FOUND = 20;
/** Of one description. */
const MAX_WORDS = 200;

/** Runs a tool of the option `search`; returns undefined for another name, and null if nothing was found. */
export function searchSchema(
  schema: GraphQLSchema,
  name: string,
  args: Readonly<Record<string, unknown>>,
): string | null | undefined {
  if (name === 'describe_type') {
    const type = schema.getType(textOf(args['type']));
    return type === undefined ? null : printType(type);
  }
  if (name !== 'search_schema') return undefined;
  const found = findWords(schema, wordsOf(textOf(args['words'])));
  return found.length === 0 ? null : found.join('\n');
}

/** The coordinates that contain most of the words; a word in a name counts more than one in a description. */
function findWords(schema: GraphQLSchema, words: readonly string[]): readonly string[] {
  return membersOf(schema)
    .map(({ line, names, text }) => ({ line, score: scoreOf(words, names, text) }))
    .filter(({ score }) => score > 0)
    .sort((a, b) => b.score - a.score || a.line.length - b.line.length)
    .slice(0, MAX_FOUND)
    .map(({ line }) => line);
}

function scoreOf(words: readonly string[], names: readonly string[], text: readonly string[]): number {
  let score = 0;
  for (const word of words) {
    if (names.some((each) => each.startsWith(word))) score += 3;
    else if (text.some((each) => each.startsWith(word))) score += 1;
  }
  return score;
}

/** A type or a field. */
interface Member {
  /** What an agent gets, such as `Order.total: Float! - With taxes.` */
  readonly line: string;
  readonly names: readonly string[];
  /** The words of the description. */
  readonly text: readonly string[];
}

/** Each schema is split into words once. */
const indexes = new WeakMap<GraphQLSchema, readonly Member[]>();

function membersOf(schema: GraphQLSchema): readonly Member[] {
  return getOrCreate(indexes, schema, () =>
    Object.values(schema.getTypeMap()).flatMap((type) => [...membersOfType(type)]),
  );
}

function* membersOfType(type: GraphQLNamedType): Generator<Member> {
  if (isIntrospectionType(type)) return;
  yield memberOf(type.name, kindOf(type), type.description);
  if (!isObjectType(type) && !isInterfaceType(type)) return;
  for (const field of Object.values(type.getFields()))
    yield memberOf(`${type.name}.${field.name}`, String(field.type), field.description);
}

function memberOf(coordinate: string, type: string, description: string | null | undefined): Member {
  const text = description ? ` - ${description.replace(/\s+/g, ' ')}` : '';
  return {
    line: `${coordinate}: ${type}${text}`,
    names: wordsOf(coordinate),
    text: wordsOf(description ?? ''),
  };
}

const kindOf = (type: GraphQLNamedType): string =>
  type.constructor.name.replace(/^GraphQL|Type$/g, '').toLowerCase() || 'type';

/** Words in lower case; camelCase and snake_case are several. */
const wordsOf = (text: string): readonly string[] =>
  text
    .replace(/(?<=[a-z\d])(?=[A-Z])/g, ' ')
    .toLowerCase()
    .split(/[^\p{L}\d]+/u)
    .filter((word) => word !== '')
    .slice(0, MAX_WORDS);
