import { type GraphQLSchema, Kind, type OperationDefinitionNode, OperationTypeNode } from 'graphql';
import type { CoreDocuments } from '../../core/by-id/core-documents.ts';
import type { LoadedDocument } from '../../core/documents/operations.ts';
import { schemaOfSelection } from './selection-schema.ts';
import { type JsonSchema, schemaOfVariables } from './type-schemas.ts';

/** The OpenAPI paths of trusted queries, and the schemas of their variables. */
interface TrustedPaths {
  readonly paths: Record<string, Record<string, object>>;
  readonly schemas: Record<string, object>;
}

/** Creates the `responses` of an operation with the schema of its `data`. */
type DescribeResponses = (data: JsonSchema) => object;

/** Describes each trusted query as a GET of the path of its id. */
export function describeTrustedQueries(
  path: string,
  documents: CoreDocuments,
  responses: DescribeResponses,
): TrustedPaths {
  const described: TrustedPaths = { paths: {}, schemas: {} };
  const { schema, loaded } = documents.trusted() ?? {};
  if (schema === undefined || loaded === undefined) return described;
  const taken = new Set<string>();
  for (const [id, document] of loaded) {
    const queries = queriesOf(document);
    if (queries.length === 0) continue;
    const get = describe({ schema, document, queries }, described.schemas, responses);
    const operationId = uniqueId(queries[0]?.name?.value ?? 'query', id, taken);
    described.paths[`${path}/${encodeURIComponent(id).replaceAll('%3A', ':')}`] = {
      get: { operationId, ...get },
    };
  }
  return described;
}

const queriesOf = ({ document }: LoadedDocument): readonly OperationDefinitionNode[] =>
  document.definitions.filter(
    (node): node is OperationDefinitionNode =>
      node.kind === Kind.OPERATION_DEFINITION && node.operation === OperationTypeNode.QUERY,
  );

/** Adds the id of the document to a name that another document has. */
function uniqueId(name: string, id: string, taken: Set<string>): string {
  const operationId = taken.has(name) ? `${name}_${id.replace(/\W+/g, '_')}` : name;
  taken.add(operationId);
  return operationId;
}

/** The queries of one document. */
interface Queries {
  readonly schema: GraphQLSchema;
  readonly document: LoadedDocument;
  readonly queries: readonly OperationDefinitionNode[];
}

function describe(all: Queries, schemas: Record<string, object>, responses: DescribeResponses): object {
  const { document, queries } = all;
  const names = queries.flatMap(({ name }) => name?.value ?? []);
  const isOne = document.operations.has(undefined);
  const description = queries.flatMap((query) => descriptionOf(query) ?? []).join('\n\n');
  return {
    summary: names.length === 0 ? 'Run a trusted query' : `Run the trusted query ${names.join(' or ')}`,
    ...(description === '' ? undefined : { description }),
    tags: ['GraphQL'],
    parameters: [...(isOne ? [] : [operationName(names)]), ...variables(all, schemas)],
    responses: responses(union(queries.map((query) => dataOf(all, query)))),
  };
}

/** Executable descriptions are new in the edition of September 2025. */
const descriptionOf = (query: OperationDefinitionNode): string | undefined =>
  (query as { readonly description?: { readonly value: string } }).description?.value;

const operationName = (names: readonly string[]): object => ({
  name: 'operationName',
  in: 'query',
  required: true,
  schema: { type: 'string', enum: names },
});

function variables({ schema, queries }: Queries, components: Record<string, object>): readonly object[] {
  const described = queries.map((query) => schemaOfVariables(schema, query, components));
  const known = described.filter((each) => each !== undefined);
  if (known.length === 0) return [];
  const required = described.every((each) => each !== undefined && 'required' in each);
  const content = { 'application/json': { schema: union(known) } };
  return [
    { name: 'variables', in: 'query', required, description: 'The variables as a JSON object', content },
  ];
}

function dataOf({ schema, document }: Queries, query: OperationDefinitionNode): JsonSchema {
  const root = schema.getQueryType();
  if (root === null || root === undefined) return {};
  return schemaOfSelection(schema, document.document, root, query.selectionSet);
}

const union = (schemas: readonly JsonSchema[]): JsonSchema =>
  schemas.length === 1 ? (schemas[0] as JsonSchema) : { anyOf: schemas };
