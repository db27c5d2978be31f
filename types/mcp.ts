import type { Middleware } from './connect.ts';

/** Options of `mcp`. */
export interface McpOptions {
  /** The name of the application, which agents show their users. */
  name: string;
  /** The version of the application. */
  version: string;
  /**
   * Where agents get access tokens (RFC 9728). The endpoint serves it below its path, and names it in its 401 and 403.
   * `scopes_supported` has the scopes that the tools require. @default none
   */
  resourceMetadata?: McpResourceMetadata | undefined;
  /** What the API is for, which agents read before they use it. @default none */
  instructions?: string | undefined;
}

/** The metadata of a protected resource (RFC 9728 §2). */
export interface McpResourceMetadata {
  /** The issuers of access tokens. */
  readonly authorizationServers: readonly string[];
  /** The URL of the endpoint, which tokens have as audience. @default the URL of the request */
  readonly resource?: string | undefined;
}

/** The middleware of `mcp`. */
export interface McpEndpoint extends Middleware {
  /** The tools at present, as agents see them. */
  tools(): readonly McpTool[];
  /** Ends the streams in which agents wait for changes. */
  close(): Promise<void>;
}

/** One tool: an operation of a trusted document. */
export interface McpTool {
  readonly name: string;
  readonly title: string;
  readonly description: string;
  /** The variables, in JSON Schema 2020-12. */
  readonly inputSchema: { readonly type: 'object'; readonly [keyword: string]: unknown };
  readonly annotations: {
    readonly readOnlyHint: boolean;
    readonly destructiveHint: boolean;
    readonly idempotentHint: boolean;
  };
}
