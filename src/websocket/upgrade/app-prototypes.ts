import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Server } from 'node:net';
import { parse } from 'node:querystring';

/** The prototypes of requests and responses of an Express app. */
interface AppPrototypes {
  readonly request: object;
  readonly response: object;
}

/** Gives request and response the prototypes of the server's Express app, and the members that its middleware expects. */
export function applyAppPrototypes(server: Server, req: IncomingMessage, res: ServerResponse): void {
  const listeners: unknown[] = server.listeners('request');
  const app = listeners.find(isApp);
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

function isApp(listener: unknown): listener is AppPrototypes {
  const { request, response } = listener as Partial<AppPrototypes>;
  return typeof request === 'object' && typeof response === 'object';
}
