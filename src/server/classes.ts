import { IncomingMessage, ServerResponse } from 'node:http';
import { optionError } from '../options/resolve-options.ts';
import { SERVER_OPTIONS } from '../options/scopes.ts';
import type { ExpressApp } from './express.ts';
import { membersBelow } from './members.ts';

/** The classes that a server is told to make its requests and responses from. */
export interface Classes {
  readonly IncomingMessage: typeof IncomingMessage;
  readonly ServerResponse: typeof ServerResponse<IncomingMessage>;
}

const born = new WeakMap<ExpressApp, { base: Classes; classes: Classes }>();

/** The classes of an app, made once, however many servers it gets. */
export function classesOf(app: ExpressApp, base: Classes): Classes {
  const known = born.get(app);
  if (known === undefined) {
    const classes = makeClasses(app, base);
    born.set(app, { base, classes });
    return classes;
  }
  for (const name of ['IncomingMessage', 'ServerResponse'] as const) {
    // An app has one prototype for its requests, hence one class.
    if (base[name] !== known.base[name] && base[name] !== NODE_CLASSES[name]) {
      throw optionError(SERVER_OPTIONS, `option "${name}" must be given to the first server of an app`);
    }
  }
  return known.classes;
}

/** Node's own. */
export const NODE_CLASSES: Classes = { IncomingMessage, ServerResponse };

/**
 * Classes whose instances already have the prototypes that the app will set, so that setting them changes nothing.
 * A real `class extends` keeps instances fast; other ways to the same chain do not (V8 of Node 20 to 26).
 */
function makeClasses(app: ExpressApp, base: Classes): Classes {
  const Request = class extends base.IncomingMessage {};
  const Response = class extends base.ServerResponse {};
  app.request = replace(app.request, Request.prototype, IncomingMessage.prototype);
  app.response = replace(app.response, Response.prototype, ServerResponse.prototype);
  return { IncomingMessage: Request, ServerResponse: Response };
}

/**
 * Puts the prototype of a class in the place of the one that Express made. That one stays, empty and inheriting from
 * its successor: sub-apps mounted earlier inherit from it, and must see what is added later.
 */
function replace(made: object, successor: object, node: object): object {
  const express: object = Object.getPrototypeOf(made);
  const own = Object.getOwnPropertyDescriptors(made);
  // Of a user's class everything is kept but what Express overrides, as it does without us.
  const given = membersBelow(Object.getPrototypeOf(successor), node);
  for (const name of Reflect.ownKeys(membersBelow(express, node))) Reflect.deleteProperty(given, name);
  Reflect.deleteProperty(successor, 'constructor');
  Object.defineProperties(successor, { ...given, ...own });
  for (const name of Reflect.ownKeys(own)) Reflect.deleteProperty(made, name);
  Object.setPrototypeOf(successor, express);
  Object.setPrototypeOf(made, successor);
  return successor;
}
