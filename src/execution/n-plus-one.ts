/*
 * Outside production the engines tell a developer which resolver loads the items of a list one by one (N+1). The promises
 * of a loader settle together, when its query has returned; those of single queries settle in many turns.
 */
import { types } from 'node:util';
import { noteSingleLoads } from '../diagnostics/logging.ts';
import { isThenable } from './types.ts';

/** Fewer calls of one resolver in one execution cost little. */
const MIN_CALLS = 10;

/** The promises that a resolver has returned for one use of a field in one execution. */
interface Loads {
  calls: number;
  settled: number;
  /** The turns in which they settled, and the last of them. */
  turns: number;
  last: number;
}

let turn = 0;
let isTurnOpen = false;

/** The number of the turn: a callback of the event loop with all microtasks after it. */
function currentTurn(): number {
  if (!isTurnOpen) {
    isTurnOpen = true;
    // Called in a microtask, so that it runs after all of them.
    process.nextTick(() => {
      isTurnOpen = false;
      turn++;
    });
  }
  return turn;
}

/** Gets the value of a resolver. Returns the value to use in its place. */
export type LoadWatch = (execution: object, node: object, value: unknown) => unknown;

const THEN = 'then';
const { then } = Promise.prototype;

/** Returns the watch of a field with a resolver; undefined in production, and where `resolveMany` is false. */
export function watchLoads(
  field: { readonly name: string; readonly resolve?: unknown; readonly extensions?: unknown },
  parentType: { readonly name: string },
): LoadWatch | undefined {
  if (process.env['NODE_ENV'] === 'production' || !field.resolve) return undefined;
  if ((field.extensions as { resolveMany?: unknown } | undefined)?.resolveMany === false) return undefined;
  const executions = new WeakMap<object, Map<object, Loads>>();
  const loadsOf = (execution: object, node: object): Loads => {
    const byNode = executions.get(execution) ?? new Map<object, Loads>();
    const loads = byNode.get(node) ?? { calls: 0, settled: 0, turns: 0, last: -1 };
    executions.set(execution, byNode.set(node, loads));
    return loads;
  };
  return (execution, node, value) => {
    if (!isThenable(value)) return value;
    const promise: PromiseLike<unknown> = value;
    const loads = loadsOf(execution, node);
    loads.calls++;
    const onSettled = (): void => {
      const now = currentTurn();
      if (now !== loads.last) loads.turns++;
      loads.last = now;
      if (++loads.settled < loads.calls || loads.turns < MIN_CALLS || loads.turns * 2 < loads.calls) return;
      noteSingleLoads(`${parentType.name}.${field.name}`, loads.calls);
    };
    if (types.isPromise(value)) {
      then.call(value, onSettled, onSettled);
      return value;
    }
    // A query builder starts its work at each call of `then`.
    return {
      [THEN]: (onValue: (value: unknown) => unknown, onReason: (reason: unknown) => unknown) =>
        promise.then((result) => {
          onSettled();
          return onValue(result);
        }, onReason),
    };
  };
}
