import type Express from 'express';
import type { Request, Response } from 'express';
import type { ExchangeRequest } from '../../exchange.ts';

export type ExpressModule = typeof Express;
export type App = ReturnType<ExpressModule>;

/** A behaviour of an Express app. */
export interface Behaviour {
  title: string;
  /** Sets the app up; a function that it returns runs once the server has been made. */
  define: (app: App, express: ExpressModule) => unknown;
  requestsToSend: (string | ExchangeRequest)[];
}

/** Members that are not in the types. */
export function members(of: object): Record<string, unknown> {
  return of as Record<string, unknown>;
}

/** A description of a request and a response, as JSON. */
export function identity(req: Request, res: Response): void {
  const app = req.app as App;
  const prototypes = [req, res].map((value) => Object.getPrototypeOf(value));
  res.json({
    prototypes: [prototypes[0] === app.request, prototypes[1] === app.response],
    links: [req.app === res.app, req.res === res, res.req === req],
    names: [req, res].map((value) => [value.constructor.name, String(value)]),
    own: prototypes.map((value) => [Object.keys(value), Object.hasOwn(value, 'constructor')]),
    enumerable: prototypes.map((value) => enumerableOf(value)),
    locals: res.locals,
  });
}

function enumerableOf(value: object): string[] {
  const names: string[] = [];
  for (const name in value) names.push(name);
  return names.sort();
}
