import { IncomingMessage, ServerResponse } from 'node:http';
import type { Http2ServerRequest, Http2ServerResponse } from 'node:http2';
import { CONNECTION_HEADERS, codeOf } from '../http/reply.ts';
import { optionError } from '../options/rules.ts';
import { SERVER_OPTIONS } from '../options/scopes.ts';

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

/** The classes from which the compatibility API of `node:http2` creates requests and responses. */
export interface Http2Classes {
  readonly Http2ServerRequest: typeof Http2ServerRequest;
  readonly Http2ServerResponse: typeof Http2ServerResponse<Http2ServerRequest>;
}

/** Loads `node:http2`, which takes as long as the rest of `espalier/server`, for the servers that need it. */
export const loadHttp2 = (): typeof import('node:http2') => process.getBuiltinModule('node:http2');

/**
 * Adds HTTP/1.1 headers that middleware expects. `:authority` becomes Host, also if the client sends both
 * (RFC 9113 §8.3.1); a body of unknown length becomes `Transfer-Encoding: chunked` (§8.1). After an abort the
 * response's socket is the closed stream: with no socket, `on-finished` waits forever, and `send` keeps its
 * file open.
 */
export function withHttp1Headers(base: Http2Classes): Http2Classes {
  const Request = class extends base.Http2ServerRequest {
    constructor(...given: ConstructorParameters<typeof Http2ServerRequest>) {
      super(...given);
      const { headers, stream } = this;
      if (headers[':authority'] !== undefined) headers.host = headers[':authority'];
      if (headers['content-length'] === undefined && !stream.endAfterHeaders)
        headers['transfer-encoding'] = 'chunked';
    }
  };
  const Response = class extends base.Http2ServerResponse {
    override writeHead(...given: [status: number, ...rest: unknown[]]): this {
      for (let args = given; ; args = [this.statusCode]) {
        try {
          return super.writeHead(...(args as [number]));
        } catch (error) {
          if (!adaptHeaders(this, error)) throw error;
        }
      }
    }
  };
  const socket = function (this: Http2ServerResponse): unknown {
    return Reflect.get(base.Http2ServerResponse.prototype, 'socket', this) ?? this.stream;
  };
  Object.defineProperty(Response.prototype, 'socket', { get: socket, configurable: true });
  // Called by express-session, which would throw.
  const implicitHeader = function (this: Http2ServerResponse): void {
    if (!this.headersSent) this.writeHead(this.statusCode);
  };
  Object.defineProperty(Response.prototype, '_implicitHeader', { value: implicitHeader, configurable: true });
  return { Http2ServerRequest: Request, Http2ServerResponse: Response };
}

/**
 * Adapts headers that are valid over HTTP/1.1. Node refuses them when the head is sent, and would refuse the
 * response of an error handler for the same reason.
 *
 * @returns whether a header was changed
 */
function adaptHeaders(res: Http2ServerResponse, error: unknown): boolean {
  const names = res.getHeaderNames();
  switch (codeOf(error)) {
    case 'ERR_HTTP2_INVALID_CONNECTION_HEADERS': {
      const refused = CONNECTION_HEADERS.filter((name) => names.includes(name));
      for (const name of refused) res.removeHeader(name);
      return refused.length > 0;
    }
    case 'ERR_HTTP2_HEADER_SINGLE_VALUE': {
      // A list and several lines have the same meaning, except for cookies (RFC 9110 §5.3).
      const lists = names.filter((name) => name !== 'set-cookie' && Array.isArray(res.getHeader(name)));
      for (const name of lists) res.setHeader(name, [res.getHeader(name)].flat().join(', '));
      return lists.length > 0;
    }
    default:
      return false;
  }
}

/**
 * Express sets HTTP/1 prototypes on every request and response, which hides the members of the HTTP/2
 * classes. As own members of the instances they remain visible, so Express and its sub-apps work over HTTP/2.
 */
export function withOwnMembers(base: Http2Classes): Http2Classes {
  const node = loadHttp2();
  const ofRequest = streamDescriptors(base.Http2ServerRequest.prototype, node.Http2ServerRequest.prototype);
  const ofResponse = streamDescriptors(
    base.Http2ServerResponse.prototype,
    node.Http2ServerResponse.prototype,
  );
  const Request = class extends base.Http2ServerRequest {
    constructor(...given: ConstructorParameters<typeof Http2ServerRequest>) {
      super(...given);
      Object.defineProperties(this, ofRequest);
    }
  };
  const Response = class extends base.Http2ServerResponse {
    constructor(...given: ConstructorParameters<typeof Http2ServerResponse>) {
      super(...given);
      Object.defineProperties(this, ofResponse);
    }
  };
  return { Http2ServerRequest: Request, Http2ServerResponse: Response };
}

/** Collects the members that the classes between a prototype and Node's class define. */
function streamDescriptors(prototype: object, node: object): PropertyDescriptorMap {
  return descriptorsUpTo(prototype, Object.getPrototypeOf(node));
}

/** The members of an Express 4 or 5 app that are used here: the prototypes of its requests and responses. */
interface ExpressApp {
  request: object;
  response: object;
}

/** Whether an app sets the prototypes of its requests and responses, as Express does. */
export function isExpressApp<App extends object>(app: App): app is App & ExpressApp {
  const { handle, request, response } = app as Partial<Record<string, unknown>>;
  return (
    typeof handle === 'function' &&
    inherits(request, IncomingMessage.prototype) &&
    inherits(response, ServerResponse.prototype)
  );
}

/**
 * Collects the property descriptors of a prototype chain up to `end` (exclusive), without constructors. The
 * nearest one wins.
 */
function descriptorsUpTo(from: object, end: object | null): PropertyDescriptorMap {
  const members: PropertyDescriptorMap = {};
  for (let at: object | null = from; at !== null && at !== end; at = Object.getPrototypeOf(at)) {
    for (const name of Reflect.ownKeys(at)) {
      if (name === 'constructor' || Object.hasOwn(members, name)) continue;
      members[name] = Object.getOwnPropertyDescriptor(at, name) as PropertyDescriptor;
    }
  }
  return members;
}

/** Whether `ancestor` is on the prototype chain of a value. */
export function inherits(value: unknown, ancestor: object): value is object {
  return typeof value === 'object' && value !== null && Object.prototype.isPrototypeOf.call(ancestor, value);
}
