import type { ServerResponse } from 'node:http';
import type { ConnectRequest, NextFunction } from '../../types/connect.ts';
import { createIde } from '../graphiql/ide.ts';
import { createNegotiator, type Negotiated } from '../http/accept.ts';
import { decodeText, GONE, readBody } from '../http/body.ts';
import { HttpError } from '../http/error.ts';
import { type Reply, writeReply } from '../http/reply.ts';
import type { GraphQLParams, Outcome, Refusal } from './contract.ts';
import type { GraphQLCore } from './core.ts';
import { refusalError } from './errors.ts';
import type { HttpSettings } from './http-settings.ts';
import { createTypeReader, GRAPHQL_TYPE, JSON_TYPE } from './media.ts';
import { malformed, paramsOfBody, paramsOfUrl } from './params.ts';

/** Answers GraphQL requests over HTTP; the steps of one request, top to bottom. */
export function createHandler(core: GraphQLCore, settings: HttpSettings) {
  const negotiate = createNegotiator([JSON_TYPE, GRAPHQL_TYPE]);
  const kindOfBody = createTypeReader();
  const ide = settings.methods.includes('GET') ? createIde(settings.graphiql) : undefined;
  const decoder = new TextDecoder('utf-8', { fatal: true });

  async function handle(req: ConnectRequest): Promise<Reply> {
    const accepted = negotiate(req.headers.accept);
    try {
      requireMethod(req);
      requireAcceptable(accepted);
      const params = req.method === 'POST' ? await paramsOfPost(req) : paramsOfUrl(req.url ?? '/');
      return toReply(await run(req, params), accepted);
    } catch (error) {
      if (error instanceof HttpError) return errorReply(error, accepted);
      throw error;
    }
  }

  function requireMethod(req: ConnectRequest): void {
    if (!settings.methods.includes(req.method as never)) {
      const headers = { allow: settings.methods.join(', ') };
      throw new HttpError(405, `${req.method} is not among the methods of this endpoint`, { headers });
    }
  }

  async function paramsOfPost(req: ConnectRequest): Promise<GraphQLParams> {
    if (kindOfBody(req.headers['content-type']) !== 'json') {
      throw new HttpError(415, 'Send the request as application/json', { code: 'UNSUPPORTED_MEDIA_TYPE' });
    }
    if (typeof req.body === 'object' && req.body !== null) return paramsOfBody(req.body);
    const text = decodeText(decoder, await readBody(req, settings.limits));
    try {
      return paramsOfBody(JSON.parse(text));
    } catch (error) {
      if (error instanceof HttpError) throw error;
      throw malformed('The request body is not valid JSON');
    }
  }

  async function run(req: ConnectRequest, params: GraphQLParams): Promise<Outcome | Refusal> {
    req.state ??= {};
    const prepared = core.prepare(await core.schemaFor(req), params, req);
    if ('errors' in prepared) return prepared;
    return prepared.run({
      rootValue: core.rootValueFor(req),
      contextValue: await core.contextFor(req),
      variableValues: params.variables,
    });
  }

  function toReply(outcome: Outcome | Refusal, { type }: Negotiated): Reply {
    const refused = 'status' in outcome || outcome.kind === 'refused';
    const status = refused && type === GRAPHQL_TYPE ? 400 : 200;
    const body =
      'body' in outcome ? outcome.body : JSON.stringify({ errors: core.formatErrors(outcome.errors) });
    return { status, headers: headersOf(type), body };
  }

  function errorReply(error: HttpError, { type }: Negotiated): Reply {
    const errors = core.formatErrors([refusalError(error.message, error.code ?? 'BAD_REQUEST')]);
    return {
      status: error.status,
      headers: { ...headersOf(type), ...error.headers },
      body: JSON.stringify({ errors }),
    };
  }

  /** The IDE's answer, where the request is for the IDE; the API's otherwise. */
  function reply(req: ConnectRequest, res: ServerResponse): Promise<Reply> {
    const page = req.method === 'GET' || req.method === 'HEAD' ? ide?.reply(req, res) : undefined;
    return page === undefined ? handle(req) : page.then((answer) => answer ?? handle(req));
  }

  return (req: ConnectRequest, res: ServerResponse, next: NextFunction): void => {
    reply(req, res).then(
      (reply) => writeReply(res, reply, req.method === 'HEAD'),
      (error) => {
        if (error !== GONE) next(error);
      },
    );
  };
}

function requireAcceptable({ type }: Negotiated): void {
  if (type === undefined) throw new HttpError(406, `Acceptable types are ${GRAPHQL_TYPE} and ${JSON_TYPE}`);
}

const headersOf = (type: string | undefined): Record<string, string> => ({
  'content-type': `${type ?? JSON_TYPE}; charset=utf-8`,
});
