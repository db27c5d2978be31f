import type { MaybePromise } from '../../../types/connect.ts';
import type { CachingSettings } from '../../core/caching/options.ts';
import type { GraphQLCore } from '../../core/core.ts';
import { events } from '../../core/diagnostics.ts';
import { type ExecutionOutcome, isThenable, type PreparedOperation } from '../../execution/types.ts';
import type { Exchange } from '../exchange.ts';
import type { RequestInputs } from '../request-inputs.ts';
import { createCachedExecution } from './cached-execution.ts';
import type { ResponseCacheSettings } from './options.ts';
import type { Execute } from './request-query.ts';

interface ExecuteSettings {
  /** Undefined if the response cache is off. */
  readonly responseCache: ResponseCacheSettings | undefined;
  readonly cacheControl: Pick<CachingSettings, 'vary'> | undefined;
}

/** Creates the function that executes the operations of one handler: through its response cache, if it has one. */
export function createExecute(core: GraphQLCore, { responseCache, cacheControl }: ExecuteSettings): Execute {
  if (responseCache === undefined) return execute;
  return createCachedExecution(core, responseCache, { execute, vary: cacheControl?.vary ?? [] });
}

function execute(
  exchange: Exchange,
  prepared: PreparedOperation,
  inputs: RequestInputs,
): MaybePromise<ExecutionOutcome> {
  const started = events.execute.hasSubscribers ? performance.now() : 0;
  const outcome = prepared.execute(inputs);
  return isThenable(outcome)
    ? outcome.then((settled) => afterExecution(exchange, prepared, settled, started))
    : afterExecution(exchange, prepared, outcome, started);
}

function afterExecution(
  exchange: Exchange,
  operation: PreparedOperation,
  outcome: ExecutionOutcome,
  started: number,
): ExecutionOutcome {
  exchange.timings?.end('execute');
  if (!events.execute.hasSubscribers) return outcome;
  // Subscribers may retain the outcome, so its buffer must not be reused.
  const retained = outcome.release === undefined ? outcome : { ...outcome, release: undefined };
  events.execute.publish({
    req: exchange.req,
    operation,
    outcome: retained,
    duration: performance.now() - started,
  });
  return retained;
}
