import type { IncomingMessage } from 'node:http';
import { Call } from '../core/call.ts';
import type { GraphQLCore } from '../core/core.ts';
import { refusalOf } from '../core/errors.ts';
import { run } from '../core/run.ts';
import { events } from '../diagnostics/events.ts';
import { ObservedOperation } from '../execution/observed.ts';
import type { ErrorOrigin, ExecutionOutcome, GraphQLParams, RequestError } from '../execution/types.ts';
import type { OperationTool } from './tools.ts';

/** The response of GraphQL to a call, and the error that refused it. */
export interface CallResult {
  readonly response: {
    readonly data?: unknown;
    readonly errors?: readonly { readonly message: string }[];
  };
  /** 401 or 403 if the option `auth` refused the operation. */
  readonly status: number | undefined;
}

interface ToolRequest {
  readonly req: IncomingMessage;
  readonly variables: Record<string, unknown>;
  readonly signal: AbortSignal;
}

/** Runs the operation of a tool. Never rejects. */
export type RunTool = (tool: OperationTool, request: ToolRequest) => Promise<CallResult>;

/** Creates the function that runs operations through all steps that an operation over HTTP has. */
export function createRunTool(core: GraphQLCore): RunTool {
  return async ({ documentId, operationName }, { req, variables, signal }) => {
    const document = { id: documentId, isPersistedQuery: false };
    const params: GraphQLParams = { query: '', document, operationName, variables, extensions: undefined };
    const call = new ToolCall(core, params, req, signal);
    try {
      const result = await run(call);
      if (result.kind === 'stream') throw new TypeError('A tool delivers one result');
      return result.kind === 'error' ? refused(core, result, call) : settled(result);
    } catch (error) {
      return refused(core, refusalOf(error), call);
    }
  };
}

/** The response to a call that failed: a mistake of the client as it is, any other error masked and reported. */
const refused = (core: GraphQLCore, { errors, status }: RequestError, origin: ErrorOrigin): CallResult => ({
  response: { errors: core.formatErrors(errors, origin) },
  status,
});

/** The operation of a tool. */
class ToolCall extends Call implements ErrorOrigin {
  readonly transport = 'mcp';
  readonly socket = undefined;
  readonly core: GraphQLCore;
  readonly request: IncomingMessage;
  readonly operationName: string | undefined;
  rootValue: unknown = undefined;
  readonly #signal: AbortSignal;

  constructor(core: GraphQLCore, params: GraphQLParams, request: IncomingMessage, signal: AbortSignal) {
    super(params, events.operation.hasSubscribers ? observedTool(request) : undefined);
    this.core = core;
    this.request = request;
    this.operationName = params.operationName;
    this.#signal = signal;
  }

  get source(): IncomingMessage {
    return this.request;
  }
  get origin(): ErrorOrigin {
    return this;
  }
  get signal(): AbortSignal | undefined {
    return this.outlivesClient ? undefined : this.#signal;
  }
  get aborted(): boolean {
    return !this.outlivesClient && this.#signal.aborted;
  }

  isWanted(): boolean {
    return !this.#signal.aborted;
  }

  override start(): void {
    this.rootValue = this.core.rootValueFor(this.request);
  }
}

const observedTool = (request: IncomingMessage): ObservedOperation =>
  new ObservedOperation({ transport: 'mcp', request });

function settled(outcome: ExecutionOutcome): CallResult {
  outcome.rest?.return().catch(() => undefined);
  const response = JSON.parse(outcome.body.toString());
  outcome.release?.();
  return { response, status: outcome.kind === 'refused' ? outcome.status : undefined };
}
