import type { ServerResponse } from 'node:http';
import type { ConnectRequest, NextFunction } from '../../types/connect.ts';
import type { Negotiated } from '../http/negotiation/accept.ts';
import type { Spent } from './batch.ts';
import { JSON_TYPE } from './request/media-types.ts';
import type { Phases } from './response/server-timing.ts';

/** One request and its answer, as the steps of the pipeline hand it on. */
export interface Exchange {
  readonly req: ConnectRequest;
  readonly res: ServerResponse;
  /** Missing under a bare `node:http` server. */
  readonly next: NextFunction | undefined;
  /** What the client accepts of the two GraphQL media types. */
  readonly accepted: Negotiated;
  /** When it began, on the clock of `performance`; 0 when nobody wants to know. */
  readonly started: number;
  /** For Server-Timing, when it is on. */
  readonly phases: Phases | undefined;
  /** What the operations of a batch have asked for so far. */
  spent: Spent | undefined;
}

/** The media type of the answer. */
export const typeOf = ({ accepted }: Exchange): string => accepted.type ?? JSON_TYPE;
