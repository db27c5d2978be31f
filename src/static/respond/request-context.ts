import type { AsyncResource } from 'node:async_hooks';
import type { ServerResponse } from 'node:http';
import type { ConnectRequest, NextFunction } from '../../../types/connect.ts';
import type { Slot } from '../cache/file-cache.ts';
import type { Settings } from '../options.ts';
import type { Chunks } from './buffer-pool.ts';

/** A request, its response, the way on, and the path it asks for. */
export interface Exchange {
  readonly req: ConnectRequest;
  readonly res: ServerResponse;
  readonly next: NextFunction;
  /** The request's own asynchronous context: looks are shared, contexts (AsyncLocalStorage) must not be. */
  readonly scope: AsyncResource;
  slot: Slot;
  /** How often the file changed between the look and the answer. */
  restarts: number;
}

/** What answers need of the site that gives them. */
export interface Means {
  readonly settings: Settings;
  readonly chunks: Chunks;
  /** Looks for a path, once more or instead of the one asked for, then concludes the exchange. */
  readonly askFor: (exchange: Exchange, key: string) => void;
}
