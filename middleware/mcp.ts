import { createMcp } from '../src/mcp/endpoint.ts';
import type { GraphQLHandler } from '../types/graphql.ts';
import type { McpEndpoint, McpOptions } from '../types/mcp.ts';

export type * from '../types/mcp.ts';

/**
 * An endpoint of the Model Context Protocol (streamable HTTP, versions 2026-07-28 and before) whose tools are the named
 * operations of the option `documents` of a handler. Needs the package `@modelcontextprotocol/server`.
 *
 * @param handler - the return value of `graphqlHTTP`, with `documents.from`: an object, a manifest or a directory
 * @throws TypeError (code `ERR_OPTION`) if `handler` has no list of documents, for an unknown option, a wrong value, or one that is missing
 * @example
 * const documents = { from: { hello: 'query hello { hello }' } };
 * const graphql = graphqlHTTP(schema, { documents });
 * app.use('/mcp', mcp(graphql, { name: 'shop', version: '1.4.0' }));
 */
export function mcp(handler: GraphQLHandler, options: McpOptions): McpEndpoint {
  return createMcp(handler, options);
}
