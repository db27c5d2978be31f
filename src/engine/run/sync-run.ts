import * as graphql from 'graphql';
import { type PooledBuffer, withViews } from '../json/buffer-pool.ts';
import { useBuffer } from '../json/sink.ts';
import type { Execution } from './execution.ts';

/** graphql 17 rejects aborted executions with this error; 16 has no abort signals. */
const { AbortedGraphQLExecutionError: AbortedError } = graphql as {
  AbortedGraphQLExecutionError?: new (reason: unknown) => Error;
};

/** Replaces the buffer of an execution that has returned its buffer. */
export const NO_BUFFER: PooledBuffer = withViews(Buffer.alloc(0));

/**
 * Returns the working buffer and drops the references to values of the user. Promises whose values are no longer
 * needed may keep the execution alive.
 */
export function releaseExecution(ex: Execution): void {
  ex.removeAbortListener?.();
  ex.removeAbortListener = undefined;
  ex.program.expectedBytes = ex.pos;
  if (ex.buffer !== NO_BUFFER) ex.pool.give(ex.buffer);
  useBuffer(ex, NO_BUFFER);
  ex.pending = [];
  ex.errors = undefined;
  ex.nulledPaths = undefined;
  ex.resolve = undefined;
  ex.reject = undefined;
}

/** Rejects an asynchronous execution. A synchronous run in progress keeps the buffer until its end. */
export function abortExecution(ex: Execution, reason: unknown): void {
  if (ex.finished) return;
  const { reject } = ex;
  ex.finished = true;
  ex.abortResolvers?.(reason);
  if (!ex.running) releaseExecution(ex);
  reject?.(AbortedError === undefined ? reason : new AbortedError(reason));
}

/** Ends a synchronous run. An execution that was aborted meanwhile returns its buffer now. */
export function endSyncRun(ex: Execution): void {
  ex.running = false;
  if (ex.finished) releaseExecution(ex);
}
