import { Http2ServerRequest, Http2ServerResponse } from 'node:http2';
import { membersBelow } from './members.ts';

/** The classes of `node:http2`'s compatibility API that a server makes its requests and responses from. */
export interface Http2Classes {
  readonly Http2ServerRequest: typeof Http2ServerRequest;
  readonly Http2ServerResponse: typeof Http2ServerResponse<Http2ServerRequest>;
}

/** Node's own. */
export const NODE_HTTP2_CLASSES: Http2Classes = { Http2ServerRequest, Http2ServerResponse };

/**
 * Requests and responses that tell what those of HTTP/1.1 do, for all the middlewares that ask them. Headers:
 * `:authority` stands for Host (RFC 9113 §8.3.1), a body of unknown length for chunks (§8.1). Socket: when the client
 * has gone there is a dead one, the stream; finding none, `on-finished` waits for ever, and `send` keeps its file open.
 */
export function likeHttp1(base: Http2Classes): Http2Classes {
  const Request = class extends base.Http2ServerRequest {
    constructor(...given: ConstructorParameters<typeof Http2ServerRequest>) {
      super(...given);
      const { headers, stream } = this;
      if (headers.host === undefined && headers[':authority'] !== undefined)
        headers.host = headers[':authority'];
      if (headers['content-length'] === undefined && !stream.endAfterHeaders)
        headers['transfer-encoding'] = 'chunked';
    }
  };
  const Response = class extends base.Http2ServerResponse {};
  const socket = function (this: Http2ServerResponse): unknown {
    return Reflect.get(base.Http2ServerResponse.prototype, 'socket', this) ?? this.stream;
  };
  Object.defineProperty(Response.prototype, 'socket', { get: socket, configurable: true });
  return { Http2ServerRequest: Request, Http2ServerResponse: Response };
}

/**
 * Express sets HTTP/1 prototypes on whatever it is given, which hides every member of the HTTP/2 classes. Carried by the
 * instances themselves they stay, and Express works over HTTP/2, sub-apps included.
 */
export function forExpress(base: Http2Classes): Http2Classes {
  const ofRequest = membersOf(base.Http2ServerRequest.prototype, Http2ServerRequest.prototype);
  const ofResponse = membersOf(base.Http2ServerResponse.prototype, Http2ServerResponse.prototype);
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

/** What a class adds to streams, from the given one up to and including Node's. */
function membersOf(prototype: object, node: object): PropertyDescriptorMap {
  return membersBelow(prototype, Object.getPrototypeOf(node));
}
