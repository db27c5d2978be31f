import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Server } from 'node:net';
import { parse } from 'node:querystring';
import type { Settings } from '../../http/routing/host.ts';

/** An Express app, with the prototypes of its requests and responses. */
interface ExpressApp extends Settings {
  readonly request: object;
  readonly response: object;
}

/**
 * Gives request and response the prototypes of the server's Express app, and the members that its middleware
 * expects.
 */
export function applyAppPrototypes(server: Server, req: IncomingMessage, res: ServerResponse): void {
  const app = expressAppOf(server);
  if (app !== undefined) {
    Object.setPrototypeOf(req, app.request);
    Object.setPrototypeOf(res, app.response);
  }
  Object.assign(req, { res, originalUrl: req.url, baseUrl: '' });
  // Express 5 has a getter for `query`; in Express 4 the router parses the query string.
  if (!('query' in req)) Object.assign(req, { query: parse(queryOf(req)) });
  Object.assign(res, { locals: Object.create(null) });
}

function queryOf({ url = '' }: IncomingMessage): string {
  const mark = url.indexOf('?');
  return mark === -1 ? '' : url.slice(mark + 1);
}

/** The Express app that receives the requests of a server, if any. */
export function expressAppOf(server: Server): ExpressApp | undefined {
  const listeners: unknown[] = server.listeners('request');
  return listeners.find(isApp);
}

function isApp(listener: unknown): listener is ExpressApp {
  const { request, response } = listener as Partial<ExpressApp>;
  return typeof request === 'object' && typeof response === 'object';
}
