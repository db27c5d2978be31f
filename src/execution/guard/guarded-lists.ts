import type { ValueShape } from './value-shape.ts';

/** A list of graphql 16 that is being completed, or has been. */
export interface ListScope {
  readonly parent: ListScope | undefined;
  /** The list has failed, so nothing reads its items. */
  isDead: boolean;
}

/** The members of a guard that lists use. */
export interface ListGuard {
  /** The list of graphql 16 whose item is being completed. */
  scope: ListScope | undefined;
  /** Nothing reads results of the execution any more. */
  readonly hasEnded: boolean;
  fail(): void;
  /** Guards a value of any type. Returns what graphql-js should complete. */
  value(value: unknown, shape: ValueShape): unknown;
}

export function isDead(scope: ListScope | undefined): boolean {
  for (let at = scope; at !== undefined; at = at.parent) if (at.isDead) return true;
  return false;
}

/** A list whose items know whether it has failed: graphql 16 closes the iterator then. */
export function guardedList(guard: ListGuard, list: Iterable<unknown>, items: ValueShape): Iterable<unknown> {
  return {
    [Symbol.iterator]: () => {
      const iterator = list[Symbol.iterator]();
      const scope: ListScope = { parent: guard.scope, isDead: false };
      const leave = (isFailed: boolean): void => {
        scope.isDead = isFailed;
        guard.scope = scope.parent;
        if (isFailed) guard.fail();
      };
      return {
        next: () => {
          guard.scope = scope.parent;
          try {
            const step = iterator.next();
            if (step.done === true) return step;
            guard.scope = scope;
            return { done: false, value: guard.value(step.value, items) };
          } catch (error) {
            leave(true);
            throw error;
          }
        },
        return: () => {
          leave(true);
          return iterator.return?.() ?? { done: true, value: undefined };
        },
      };
    },
  };
}
