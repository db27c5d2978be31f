import { type GraphQLNamedType, type GraphQLSchema, isInterfaceType, isObjectType, printType } from 'graphql';
import type { McpTool } from '../../types/mcp.ts';

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
const MAX_WORDS = 10;

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
  const scored: { readonly line: string; readonly score: number }[] = [];
  for (const { coordinate, type, description } of membersOf(schema)) {
    const names = wordsOf(coordinate);
    const text = wordsOf(description);
    let score = 0;
    for (const word of words) {
      if (names.some((each) => each.startsWith(word))) score += 3;
      else if (text.some((each) => each.startsWith(word))) score += 1;
    }
    if (score === 0) continue;
    const line = `${coordinate}: ${type}${description === '' ? '' : ` - ${description.replace(/\s+/g, ' ')}`}`;
    scored.push({ line, score });
  }
  return scored
    .sort((a, b) => b.score - a.score || a.line.length - b.line.length)
    .slice(0, MAX_FOUND)
    .map(({ line }) => line);
}

interface Member {
  readonly coordinate: string;
  readonly type: string;
  readonly description: string;
}

function* membersOf(schema: GraphQLSchema): Generator<Member> {
  for (const type of Object.values(schema.getTypeMap())) {
    if (type.name.startsWith('__')) continue;
    yield { coordinate: type.name, type: kindOf(type), description: type.description ?? '' };
    if (!isObjectType(type) && !isInterfaceType(type)) continue;
    for (const field of Object.values(type.getFields())) {
      const coordinate = `${type.name}.${field.name}`;
      yield { coordinate, type: String(field.type), description: field.description ?? '' };
    }
  }
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
    .slice(0, text.length > 1000 ? 200 : MAX_WORDS * 20);
