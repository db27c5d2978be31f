import type { ServerResponse } from 'node:http';
import type { ConnectRequest, NextFunction } from '../../../types/connect.ts';
import type { CacheEntry, Waiter } from '../cache/entry.ts';
import type { FileCache } from '../cache/file-cache.ts';
import type { HeaderList, Representation } from '../file/representation.ts';
import type { StaticSettings } from '../options.ts';
import type { StreamedBody } from '../stream/stream-file.ts';

/** A response whose body has to be read from the file. */
export interface StreamPlan extends StreamedBody {
  readonly representation: Representation;
  readonly status: number;
  readonly headers: HeaderList;
}

/** Checks cache entries. */
interface Checker {
  /** Checks the entry of a request, then calls its `onChecked`. */
  check(request: Waiter): void;
}

/** The state that all requests of one middleware share. */
export interface ServeContext {
  readonly settings: StaticSettings;
  readonly cache: FileCache;
  readonly checker: Checker;
  /** Sends a body that is not in memory. Calls `retry` if the file has changed before anything was sent. */
  readonly sendBody: (request: RequestContext, plan: StreamPlan, retry: () => void) => void;
}

/** A request with its response and the `next` function. */
export interface RequestTriple {
  readonly req: ConnectRequest;
  readonly res: ServerResponse;
  readonly next: NextFunction;
}

/** A request for a URL path that may lead to a file. */
export interface RequestContext extends RequestTriple, Waiter {
  readonly context: ServeContext;
  /** The cache entry of the URL path, or of the fallback page. */
  entry: CacheEntry;
  /** The status of the response: 404 for the page of the option `notFound`. */
  status: 200 | 404;
  /** The number of changes of the file between its check and its response. */
  retries: number;
}
