import { type GraphQLSchema, Kind, type OperationDefinitionNode, OperationTypeNode } from 'graphql';
import type { McpTool } from '../../types/mcp.ts';
import type { CoreDocuments } from '../core/by-id.ts';
import type { GraphQLCore } from '../core/core.ts';
import type { LoadedDocument } from '../core/documents.ts';
import { createWarningLog } from '../diagnostics/logging.ts';
import { schemaOfVariables } from './input-schema.ts';

export interface OperationTool {
  readonly tool: McpTool;
  readonly documentId: string;
  readonly operationName: string;
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
    current ??= readTools(documents);
    return current;
  };
}

function readTools(documents: CoreDocuments): ToolList {
  const tools = new Map<string, OperationTool>();
  const { schema, loaded } = documents.trusted() ?? {};
  if (schema === undefined || loaded === undefined) return tools;
  for (const [id, document] of loaded) {
    for (const operation of namedOperations(document)) {
      const name = operation.name?.value as string;
      const problem = problemOf(name, tools);
      if (problem === undefined) tools.set(name, toolOf({ schema, id, document, operation }));
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
}

function toolOf({ schema, id, document, operation }: Source): OperationTool {
  const name = operation.name?.value as string;
  const isQuery = operation.operation === OperationTypeNode.QUERY;
  const title = titleOf(name);
  return {
    documentId: id,
    operationName: name,
    scopes: scopesOf(document, name),
    tool: {
      name,
      title,
      description: descriptionOf(operation) ?? title,
      inputSchema: inputSchemaOf(schema, operation),
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
function inputSchemaOf(schema: GraphQLSchema, operation: OperationDefinitionNode): McpTool['inputSchema'] {
  const definitions: Record<string, object> = {};
  const described = schemaOfVariables(schema, operation, definitions);
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
