import type { IncomingMessage, ServerResponse } from 'node:http';
import { pipeline } from 'node:stream/promises';
import type { ConnectRequest, NextFunction } from '../../types/connect.ts';
import type { GraphQLHandler } from '../../types/graphql.ts';
import type { McpEndpoint, McpOptions, McpResourceMetadata } from '../../types/mcp.ts';
import { coreOf, type GraphQLCore } from '../core/core.ts';
import { debug } from '../diagnostics/logging.ts';
import { offeredTools } from '../diagnostics/registry.ts';
import type { ErrorOrigin } from '../execution/types.ts';
import { createBodyReader, drainRequest, isParsed } from '../http/body.ts';
import {
  destroyIncomplete,
  HttpError,
  NO_STORE,
  type Reply,
  startedBefore,
  wasStarted,
  writeReply,
} from '../http/reply.ts';
import { type HostCheck, isOwnOrigin, pathOf, publicOriginOf, withoutSlash } from '../http/routing.ts';
import {
  type Accepts,
  isListOf,
  type Rules,
  resolveOptions,
  rule,
  wrongArgument,
  wrongOption,
} from '../options/rules.ts';
import { MCP_OPTIONS } from '../options/scopes.ts';
import { isObject, isString } from '../options/values.ts';
import { createRunTool } from './call.ts';
import {
  createArgumentCheck,
  createProtocolServer,
  loadSdk,
  type McpExchange,
  type McpServices,
} from './protocol.ts';
import { createToolList } from './tools.ts';

/** The options of `mcp` after checks, with defaults filled in. */
interface McpSettings {
  readonly resourceMetadata: McpResourceMetadata | undefined;
  readonly name: string;
  readonly version: string;
  readonly instructions: string | undefined;
}

const optionalText = rule<string | undefined>(undefined, isString, 'a string');
const isText: Accepts = (value) => isString(value) && value !== '';
const isUrls = (value: unknown): boolean =>
  isListOf((url) => isString(url) && URL.canParse(url))(value) && (value as readonly string[]).length > 0;

const rules: Rules<McpSettings> = {
  resourceMetadata: rule<McpResourceMetadata | undefined>(
    undefined,
    (value) => isObject(value) && isUrls(value['authorizationServers']),
    'an object with a list of URLs "authorizationServers"',
  ),
  // Both are required: their defaults are refused.
  name: rule('', isText, "the name of the application, such as 'shop'"),
  version: rule('', isText, "the version of the application, such as '1.4.0'"),
  instructions: optionalText,
};

/** Requests of the protocol are small: the arguments of one tool. */
const MAX_BODY_BYTES = 1024 * 1024;

/**
 * Creates the middleware of `mcp`.
 *
 * @throws TypeError (code `ERR_OPTION`).
 */
export function createMcp(handler: GraphQLHandler, given: McpOptions): McpEndpoint {
  const core = coreOf(handler);
  const { documents } = core ?? {};
  if (core === undefined || documents?.trusted() === undefined) {
    const accepted =
      'a handler of graphqlHTTP with one schema, and with "documents.from": a list of documents';
    throw wrongArgument(MCP_OPTIONS, 'handler', handler, accepted);
  }
  const settings = resolveOptions(MCP_OPTIONS, given, rules);
  for (const name of ['name', 'version'] as const)
    if (settings[name] === '') throw wrongOption(MCP_OPTIONS, name, given?.[name], rules[name].accepted);
  const sdk = loadSdk();
  const services: McpServices = {
    ...settings,
    tools: createToolList(core, documents, () => protocol.notify.toolsChanged()),
    run: createRunTool(core),
    problemOf: createArgumentCheck(sdk),
  };
  const protocol = sdk.createMcpHandler(
    ({ authInfo, era }) =>
      createProtocolServer(sdk, services, authInfo?.extra?.['exchange'] as McpExchange, era === 'modern'),
    { maxRequestBodySize: MAX_BODY_BYTES, onerror: (error) => debug.graphql('mcp: %s', error.message) },
  );
  const http = new Endpoint(core, settings, services, protocol.fetch);
  const middleware = (req: ConnectRequest, res: ServerResponse, next: NextFunction) =>
    http.handle(req, res, next);
  const endpoint = Object.assign(middleware, {
    tools: () => [...services.tools().values()].map(({ tool }) => tool),
    close() {
      http.close();
      return protocol.close();
    },
  });
  // Now, so that the warnings about documents are at the start.
  endpoint.tools();
  offeredTools.add(endpoint, endpoint.tools);
  return endpoint;
}

type Fetch = (request: Request, options: { authInfo: AuthInfo }) => Promise<Response>;

/** The property of the SDK that hands a value through to the server of the request. */
interface AuthInfo {
  readonly token: string;
  readonly clientId: string;
  readonly scopes: string[];
  readonly extra: { readonly exchange: McpExchange };
}

const METADATA_PATH = '/.well-known/oauth-protected-resource';
const LOOPBACK_HOST = /^(?:localhost|127\.0\.0\.1|\[::1\])(?::\d+)?$/i;
const LOOPBACK_ADDRESS = /^(?:::ffff:)?127\.|^::1$/;

/** The endpoint at one path: checks requests, passes them to the SDK, and sends its responses. */
class Endpoint {
  readonly #settings: McpSettings;
  readonly #services: McpServices;
  readonly #fetch: Fetch;
  readonly #isHostAllowed: HostCheck;
  readonly #core: GraphQLCore;
  #isClosed = false;

  constructor(core: GraphQLCore, settings: McpSettings, services: McpServices, fetch: Fetch) {
    this.#core = core;
    this.#settings = settings;
    this.#services = services;
    this.#fetch = fetch;
    this.#isHostAllowed = core.isHostAllowed ?? isLoopbackConsistent;
  }

  /** Further requests get 503, as do those that the SDK ends now. */
  close(): void {
    this.#isClosed = true;
  }

  handle(req: ConnectRequest, res: ServerResponse, next: NextFunction): void {
    const path = pathOf(req.url);
    const isMetadata = this.#settings.resourceMetadata !== undefined && path === METADATA_PATH;
    if (!isMetadata && path !== '' && path !== '/') {
      next();
      return;
    }
    if (wasStarted(res, 'mcp cannot send a result', next)) return;
    const refusal = this.#refusalOf(req, isMetadata ? ['GET', 'HEAD'] : ['POST']);
    if (refusal !== undefined) {
      drainRequest(req, res);
      writeReply(req, res, refusal);
    } else if (isMetadata) writeReply(req, res, this.#metadata(req));
    else this.#serve(req, res).catch((error: unknown) => this.#fail(req, res, error));
  }

  /** A page of another site, or one whose name was rebound to this machine, must not use the endpoint. */
  #refusalOf(req: IncomingMessage, methods: readonly string[]): Reply | undefined {
    if (!this.#isHostAllowed(req)) {
      return forbidden(
        `The host ${req.headers.host ?? ''} is not allowed (option "allowedHosts" of graphqlHTTP)`,
      );
    }
    const { method = 'GET', headers } = req;
    const { origin } = headers;
    const isAllowed =
      origin === undefined || this.#core.allowedOrigins.includes(origin) || isOwnOrigin(req, origin);
    if (!isAllowed)
      return forbidden(`The origin ${origin} is not allowed (option "allowedOrigins" of graphqlHTTP)`);
    if (this.#isClosed) return CLOSED;
    if (methods.includes(method)) return undefined;
    return jsonRpcError(405, `The method ${method} is not allowed`, { allow: methods.join(', ') });
  }

  async #serve(req: ConnectRequest, res: ServerResponse): Promise<void> {
    const stop = new AbortController();
    res.once('close', () => stop.abort());
    const exchange: McpExchange = { req, signal: stop.signal, refused: undefined };
    const authInfo = { token: '', clientId: '', scopes: [], extra: { exchange } };
    const body = isParsed(req) ? textOf(req.body) : await readBody(req);
    const response = await this.#fetch(toRequest(req, body, stop.signal), { authInfo });
    // The status depends on the result: a stream begins before the tool has run.
    const chunks = response.body?.getReader();
    const first = await chunks?.read();
    if (res.headersSent) {
      await chunks?.cancel();
      throw startedBefore('mcp cannot send a result');
    }
    // In a batch the other calls have results.
    if (exchange.refused !== undefined && !isBatch(body) && this.#settings.resourceMetadata !== undefined) {
      await chunks?.cancel();
      writeReply(req, res, this.#challenge(req, exchange.refused));
    } else await send(res, response, readChunks(first, chunks));
  }

  /** Where an agent gets a token that the tool accepts (RFC 6750 §3, RFC 9728 §5.1). */
  #challenge(req: ConnectRequest, { status, scopes }: NonNullable<McpExchange['refused']>): Reply {
    const parameters = [
      ...(status === 403 ? ['error="insufficient_scope"'] : []),
      ...(scopes.length > 0 ? [`scope="${scopes.join(' ')}"`] : []),
      `resource_metadata="${urlOf(req)}${METADATA_PATH}"`,
    ];
    const message =
      status === 401 ? 'Sign in to use this tool' : 'The access token lacks a scope of this tool';
    return jsonRpcError(status, message, { 'www-authenticate': `Bearer ${parameters.join(', ')}` });
  }

  #metadata(req: ConnectRequest): Reply {
    const { authorizationServers = [], resource } = this.#settings.resourceMetadata ?? {};
    const scopes = new Set([...this.#services.tools().values()].flatMap((tool) => tool.scopes));
    const body = JSON.stringify({
      resource: resource ?? urlOf(req).slice(0, -METADATA_PATH.length),
      authorization_servers: authorizationServers,
      ...(scopes.size > 0 ? { scopes_supported: [...scopes] } : undefined),
      bearer_methods_supported: ['header'],
    });
    return { status: 200, headers: { ...NO_STORE, 'content-type': 'application/json' }, body };
  }

  #fail(req: IncomingMessage, res: ServerResponse, error: unknown): void {
    if (res.destroyed || res.closed || res.writableEnded) return;
    if (HttpError.is(error) && !res.headersSent) {
      drainRequest(req, res);
      writeReply(req, res, jsonRpcError(error.status, error.message));
      return;
    }
    if (!this.#isClosed) this.#core.reportError(error, originOf(req));
    if (res.headersSent) destroyIncomplete(res);
    else if (this.#isClosed) writeReply(req, res, CLOSED);
    else writeReply(req, res, jsonRpcError(500, 'Internal server error'));
  }
}

/** A page whose name an attacker has pointed at this machine sends its own name as host (DNS rebinding). */
const isLoopbackConsistent: HostCheck = (req) =>
  !LOOPBACK_ADDRESS.test(req.socket.localAddress ?? '') ||
  LOOPBACK_HOST.test((req.headers[':authority'] as string | undefined) ?? req.headers.host ?? '');

const originOf = (request: IncomingMessage): ErrorOrigin => ({
  transport: 'mcp',
  operationName: undefined,
  request,
  socket: undefined,
});

const forbidden = (message: string): Reply => jsonRpcError(403, message);

function jsonRpcError(status: number, message: string, headers: Record<string, string> = {}): Reply {
  const body = JSON.stringify({ jsonrpc: '2.0', error: { code: -32_000, message }, id: null });
  return { status, headers: { ...NO_STORE, 'content-type': 'application/json', ...headers }, body };
}

const CLOSED = jsonRpcError(503, 'The endpoint is closed');

/** The URL of a request without its query. */
function urlOf(req: ConnectRequest): string {
  return (publicOriginOf(req) ?? '') + withoutSlash(pathOf(req.originalUrl ?? req.url));
}

/**
 * The request as fetch has it. Its URL is a constant, which the SDK does not read: a client may send a host of which no
 * URL can be made. A body that middleware has parsed is passed on as JSON.
 */
function toRequest(
  req: ConnectRequest,
  body: string | Uint8Array<ArrayBuffer>,
  signal: AbortSignal,
): Request {
  const headers = new Headers();
  for (const [name, value] of Object.entries(req.headers)) {
    if (name.startsWith(':') || value === undefined) continue;
    for (const each of [value].flat()) headers.append(name, each);
  }
  return new Request('http://localhost/', { method: 'POST', headers, signal, body });
}

/** Whether a body is a list of messages. */
const isBatch = (body: string | Uint8Array): boolean => /^\s*\[/.test(Buffer.from(body).toString('latin1'));

const textOf = (body: unknown): string =>
  typeof body === 'string' || Buffer.isBuffer(body) ? String(body) : JSON.stringify(body);

const readBody = createBodyReader(
  { bodyBytes: MAX_BODY_BYTES, bodyTimeout: 30_000 },
  (body) => new Uint8Array(body),
);

type Chunks = ReadableStreamDefaultReader<Uint8Array>;

async function* readChunks(
  first: Awaited<ReturnType<Chunks['read']>> | undefined,
  chunks: Chunks | undefined,
) {
  for (let read = first; read?.value !== undefined; read = await chunks?.read()) yield read.value;
}

async function send(res: ServerResponse, { status, headers }: Response, body: AsyncIterable<Uint8Array>) {
  res.statusCode = status;
  for (const [name, value] of Object.entries(NO_STORE)) res.setHeader(name, value);
  for (const [name, value] of headers) {
    // Of HTTP/1.1 only (RFC 9113 §8.2.2).
    if (name !== 'connection') res.setHeader(name, value);
  }
  await pipeline(body, res);
}
