import { createInspect } from '../src/inspect/middleware.ts';
import type { Middleware } from '../types/connect.ts';
import type { InspectOptions } from '../types/inspect.ts';

export type * from '../types/inspect.ts';

/**
 * Shows live figures of this process on one page: requests and latencies per operation, errors, caches,
 * sockets and memory. `GET` with `Accept: application/json`, and `figures.json` below the mount, send them as
 * JSON. Without the option `guard` it is off unless `NODE_ENV` is `development` or `test`.
 *
 * @throws TypeError (code `ERR_OPTION`) for an unknown option or a wrong value
 * @example
 * app.use('/inspect', inspect({ guard: (req) => req.headers.authorization === `Bearer ${token}` }));
 */
export function inspect(options?: InspectOptions): Middleware {
  return createInspect(options);
}
