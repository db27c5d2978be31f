import type { Http2ServerRequest, Http2ServerResponse } from 'node:http2';
import { CONNECTION_HEADERS } from '../http/reply/connection-headers.ts';
import { codeOf } from '../http/reply/system-error.ts';
import { descriptorsUpTo } from './descriptors.ts';

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
