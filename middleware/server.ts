import * as http from 'node:http';

/** An `http.Server` for an app. */
export function createServer(app: http.RequestListener, options: http.ServerOptions = {}): http.Server {
  return http.createServer(options, app);
}
