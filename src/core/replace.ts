import type { GraphQLSchema } from 'graphql';
import { type OptionScope, optionError } from '../options/rules.ts';

/** Told that new operations use another schema; older ones should end within a time. */
export type ReplaceListener = (milliseconds: number) => void;

export interface ReplaceSteps {
  /** Checks a schema as when the handler was created, and returns the one that is served. */
  check(schema: unknown): GraphQLSchema;
  /** Prepares the known documents for a schema, and returns the function that uses them. */
  warm(from: GraphQLSchema, to: GraphQLSchema): Promise<() => void>;
}

/** The schema of one handler, which can be replaced while operations run. */
export class ReplaceableSchema {
  #current: GraphQLSchema | undefined;
  readonly #scope: OptionScope;
  readonly #listeners = new Set<ReplaceListener>();
  #last: Promise<void> = Promise.resolve();

  /** `current` is undefined if the schema depends on the request. */
  constructor(scope: OptionScope, current: GraphQLSchema | undefined) {
    this.#scope = scope;
    this.#current = current;
  }

  get current(): GraphQLSchema {
    return this.#current as GraphQLSchema;
  }

  onReplace(listener: ReplaceListener): void {
    this.#listeners.add(listener);
  }

  /** Replacements run one after the other. A schema that is refused leaves the current one in use. */
  replace(given: unknown, milliseconds: number, steps: ReplaceSteps): Promise<void> {
    const run = async (): Promise<void> => {
      if (this.#current === undefined) {
        const hint = 'the schema is a function of the request; let that function return the new schema';
        throw optionError({ ...this.#scope, name: 'replace' }, hint);
      }
      const next = steps.check(given);
      const commit = await steps.warm(this.#current, next);
      commit();
      this.#current = next;
      for (const listener of this.#listeners) listener(milliseconds);
    };
    const replaced = this.#last.then(run);
    this.#last = replaced.catch(() => undefined);
    return replaced;
  }
}
