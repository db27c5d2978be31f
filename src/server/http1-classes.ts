import { IncomingMessage, ServerResponse } from 'node:http';
import { optionError } from '../options/resolve-options.ts';
import { SERVER_OPTIONS } from '../options/scopes.ts';
import { descriptorsUpTo } from './descriptors.ts';
import type { ExpressApp } from './express-app.ts';

/** The classes from which `node:http` creates requests and responses. */
export interface Classes {
  readonly IncomingMessage: typeof IncomingMessage;
  readonly ServerResponse: typeof ServerResponse<IncomingMessage>;
}

const classesByApp = new WeakMap<ExpressApp, { base: Classes; classes: Classes }>();

/** Returns the classes of an app, which are created once for all servers of the app. */
export function classesOfApp(app: ExpressApp, base: Classes): Classes {
  const known = classesByApp.get(app);
  if (known === undefined) {
    const classes = createClasses(app, base);
    classesByApp.set(app, { base, classes });
    return classes;
  }
  for (const name of ['IncomingMessage', 'ServerResponse'] as const) {
    // Express has one request prototype per app, so there can be only one class.
    if (base[name] !== known.base[name] && base[name] !== NODE_CLASSES[name]) {
      throw optionError(
        SERVER_OPTIONS,
        `option "${name}" differs from the first server of this app; pass the same class to every createServer(app)`,
      );
    }
  }
  return known.classes;
}

/** The classes of `node:http`. */
export const NODE_CLASSES: Classes = { IncomingMessage, ServerResponse };

/**
 * Creates classes whose instances already have the prototypes that Express sets, so that setting them changes
 * nothing. A real `class extends` keeps instances fast; other ways to the same prototype chain do not (V8 of
 * Node 20 to 26).
 */
function createClasses(app: ExpressApp, base: Classes): Classes {
  const Request = class extends base.IncomingMessage {};
  const Response = class extends base.ServerResponse {};
  app.request = replacePrototype(app.request, Request.prototype, IncomingMessage.prototype);
  app.response = replacePrototype(app.response, Response.prototype, ServerResponse.prototype);
  return { IncomingMessage: Request, ServerResponse: Response };
}

/**
 * Replaces the prototype that Express created with the prototype of our class. Sub-apps that were mounted
 * earlier inherit from the old prototype and must see later additions, so the old prototype is emptied and
 * inherits from the new one.
 */
function replacePrototype(made: object, successor: object, node: object): object {
  const express: object = Object.getPrototypeOf(made);
  const own = Object.getOwnPropertyDescriptors(made);
  // Keeps members of a user's class that Express does not override, as Express does.
  const given = descriptorsUpTo(Object.getPrototypeOf(successor), node);
  for (const name of Reflect.ownKeys(descriptorsUpTo(express, node))) Reflect.deleteProperty(given, name);
  Reflect.deleteProperty(successor, 'constructor');
  Object.defineProperties(successor, { ...given, ...own });
  for (const name of Reflect.ownKeys(own)) Reflect.deleteProperty(made, name);
  Object.setPrototypeOf(successor, express);
  Object.setPrototypeOf(made, successor);
  return successor;
}
