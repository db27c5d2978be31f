import {
  type GraphQLNamedType,
  type GraphQLSchema,
  isInterfaceType,
  isIntrospectionType,
  isObjectType,
  Kind,
  type OperationDefinitionNode,
  OperationTypeNode,
  printType,
} from 'graphql';
import type { McpTool } from '../../types/mcp.ts';
import type { CoreDocuments } from '../core/by-id.ts';
import type { GraphQLCore } from '../core/core.ts';
import type { LoadedDocument } from '../core/documents.ts';
import { createWarningLog } from '../diagnostics/logging.ts';
import { optionError } from '../options/rules.ts';
import { MCP_OPTIONS } from '../options/scopes.ts';
import { getOrCreate } from '../options/values.ts';
import { schemaOfVariables } from './input-schema.ts';

export interface OperationTool {
  readonly tool: McpTool;
  readonly documentId: string;
  readonly operationName: string;
  readonly variables: ReadonlySet<string>;
  /** Scopes that an access token needs for it. */
  readonly scopes: readonly string[];
}

/** The tools at present, by name. */
export type ToolList = ReadonlyMap<string, OperationTool>;

/** Names of tools that most clients accept. */
const MAX_NAME_LENGTH = 64;
/** Every conversation contains the descriptions of all tools, and models choose badly among many. */
const MANY_TOOLS = 40;
/** A rule of thumb for English and JSON. */
const CHARACTERS_PER_TOKEN = 4;

const warn = createWarningLog({ owner: 'mcp', type: 'McpWarning', code: 'ESPALIER_MCP' });

/** Returns the tools of a handler's documents. The list is created again after these or the schema were replaced. */
export function createToolList(
  core: Pick<GraphQLCore, 'onReplace'>,
  documents: CoreDocuments,
  hidden: ReadonlySet<string>,
  onChange: () => void,
): () => ToolList {
  let current: ToolList | undefined;
  const reset = (): void => {
    current = undefined;
    onChange();
  };
  documents.onReload(reset);
  core.onReplace(reset);
  return () => {
    current ??= readTools(documents, hidden);
    return current;
  };
}

function readTools(documents: CoreDocuments, hidden: ReadonlySet<string>): ToolList {
  const tools = new Map<string, OperationTool>();
  const { schema, loaded } = documents.trusted() ?? {};
  if (schema === undefined || loaded === undefined) return tools;
  for (const [id, document] of loaded) {
    for (const operation of namedOperations(document)) {
      const name = operation.name?.value as string;
      const problem = problemOf(name, tools);
      if (problem === undefined) tools.set(name, toolOf({ schema, id, document, operation, hidden }));
      else warn(new Error(`the operation "${name}" of the document "${id}" is no tool: ${problem}`));
    }
  }
  if (tools.size > MANY_TOOLS) {
    const size = JSON.stringify([...tools.values()].map(({ tool }) => tool)).length;
    const tokens = Math.ceil(size / CHARACTERS_PER_TOKEN);
    warn(
      new Error(
        `${tools.size} tools take about ${tokens} tokens of every conversation, and models choose worse among more than ${MANY_TOOLS}; offer fewer documents`,
      ),
    );
  }
  return tools;
}

/** Queries and mutations with a name. */
const namedOperations = ({ document }: LoadedDocument): readonly OperationDefinitionNode[] =>
  document.definitions.filter(
    (node): node is OperationDefinitionNode =>
      node.kind === Kind.OPERATION_DEFINITION &&
      node.name !== undefined &&
      node.operation !== OperationTypeNode.SUBSCRIPTION,
  );

function problemOf(name: string, tools: ToolList): string | undefined {
  if (name.length > MAX_NAME_LENGTH)
    return `its name has more than ${MAX_NAME_LENGTH} characters; shorten it`;
  return tools.has(name) ? 'another document has an operation of this name; rename one of them' : undefined;
}

interface Source {
  readonly schema: GraphQLSchema;
  readonly id: string;
  readonly document: LoadedDocument;
  readonly operation: OperationDefinitionNode;
  readonly hidden: ReadonlySet<string>;
}

function toolOf({ schema, id, document, operation, hidden }: Source): OperationTool {
  const name = operation.name?.value as string;
  const isQuery = operation.operation === OperationTypeNode.QUERY;
  const title = titleOf(name);
  return {
    documentId: id,
    operationName: name,
    variables: new Set(operation.variableDefinitions?.map(({ variable }) => variable.name.value)),
    scopes: scopesOf(document, name),
    tool: {
      name,
      title,
      description: descriptionOf(operation) ?? title,
      inputSchema: inputSchemaOf(schema, operation, hidden),
      annotations: { readOnlyHint: isQuery, destructiveHint: !isQuery, idempotentHint: isQuery },
    },
  };
}

/** `findOrders` becomes "Find orders". */
function titleOf(name: string): string {
  const words = name
    .replaceAll('_', ' ')
    .replace(/(?<=[a-z\d])(?=[A-Z])/g, ' ')
    .toLowerCase()
    .trim();
  return words.charAt(0).toUpperCase() + words.slice(1);
}

/** The definitions of input objects are those that the variables of this tool refer to. */
function inputSchemaOf(
  schema: GraphQLSchema,
  operation: OperationDefinitionNode,
  hidden: ReadonlySet<string>,
): McpTool['inputSchema'] {
  const variableDefinitions = (operation.variableDefinitions ?? []).filter(
    ({ variable }) => !hidden.has(variable.name.value),
  );
  const definitions: Record<string, object> = {};
  const described = schemaOfVariables(schema, { ...operation, variableDefinitions }, definitions);
  return {
    ...(described ?? { properties: {} }),
    type: 'object',
    additionalProperties: false,
    ...(Object.keys(definitions).length > 0 ? { $defs: definitions } : undefined),
  };
}

/** Executable descriptions are new in the edition of September 2025. */
const descriptionOf = (query: OperationDefinitionNode): string | undefined =>
  (query as { readonly description?: { readonly value: string } }).description?.value;

function scopesOf({ operations }: LoadedDocument, name: string): readonly string[] {
  const prepared = operations.get(name);
  return prepared?.scopes?.() ?? [];
}

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

/** @throws TypeError for an operation with the name of a search tool. One that is read later replaces that tool. */
export function assertNoSearchTools(documents: CoreDocuments): void {
  const { loaded = new Map<string, LoadedDocument>() } = documents.trusted() ?? {};
  const names = new Set([...loaded.values()].flatMap(namedOperations).map(({ name }) => name?.value));
  const taken = SEARCH_TOOLS.find(({ name }) => names.has(name));
  if (taken === undefined) return;
  const problem = `option "search" adds the tool "${taken.name}", and a document has an operation of this name; rename the operation`;
  throw optionError(MCP_OPTIONS, problem);
}

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

// Not the name of the class: bundlers shorten it, and an application may have its own.
const kindOf = (type: GraphQLNamedType): string =>
  type[Symbol.toStringTag].replace(/^GraphQL|Type$/g, '').toLowerCase();

/** Words in lower case; camelCase and snake_case are several. */
const wordsOf = (text: string): readonly string[] =>
  text
    .replace(/(?<=[a-z\d])(?=[A-Z])/g, ' ')
    .toLowerCase()
    .split(/[^\p{L}\d]+/u)
    .filter((word) => word !== '')
    .slice(0, MAX_WORDS);
