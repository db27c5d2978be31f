import type { GraphQLSchema } from 'graphql';
import { type OptionScope, optionError, wrongArgument } from '../options/rules.ts';

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
  readonly #listeners = new Set<() => void>();
  #last: Promise<void> = Promise.resolve();

  /** `current` is undefined if the schema depends on the request. */
  constructor(scope: OptionScope, current: GraphQLSchema | undefined) {
    this.#scope = scope;
    this.#current = current;
  }

  get current(): GraphQLSchema {
    return this.#current as GraphQLSchema;
  }

  onReplace(listener: () => void): void {
    this.#listeners.add(listener);
  }

  /** Replacements run one after the other. A schema that is refused leaves the current one in use. */
  replace(given: unknown, steps: ReplaceSteps): Promise<void> {
    const run = async (): Promise<void> => {
      if (this.#current === undefined) {
        const hint = 'the schema is a function of the request; let that function return the new schema';
        throw optionError({ ...this.#scope, name: 'replace' }, hint);
      }
      const next = steps.check(given);
      const commit = await steps.warm(this.#current, next);
      commit();
      this.#current = next;
      for (const listener of this.#listeners) listener();
    };
    const replaced = this.#last.then(run);
    this.#last = replaced.catch(() => undefined);
    return replaced;
  }
}

const schemasOfHandlers = new WeakSet<GraphQLSchema>();

/** Whether `graphqlHTTP` has created a handler for the schema. */
export const hasHandler = (schema: GraphQLSchema): boolean => schemasOfHandlers.has(schema);

/** Notes that `graphqlHTTP` has a handler for the schema. */
export const noteHandler = (schema: GraphQLSchema): void => void schemasOfHandlers.add(schema);

export function notASchema(scope: OptionScope, value: unknown): TypeError {
  const accepted = 'a GraphQLSchema, or a function of the request that returns one';
  return wrongArgument(scope, 'schema', value, `${accepted}${schemaHint(value)}`);
}

/** Returns a hint about a common mistake with a schema. */
export function schemaHint(value: unknown): string {
  if (typeof value === 'string') return '. Create one from SDL with buildSchema or makeExecutableSchema';
  if (value instanceof Promise) return '. Await the promise, or pass a function that returns it';
  if (Object.prototype.toString.call(value) === '[object GraphQLSchema]') {
    return (
      '. This schema belongs to another copy of graphql: install one version only (npm ls graphql), ' +
      'and bundle either both graphql and espalier or neither'
    );
  }
  if (Array.isArray(value)) return '. Create one from a list of SDL with makeExecutableSchema';
  if (typeof value !== 'object' || value === null) return '';
  if ('schema' in value) return '. Pass the schema first: graphqlHTTP(schema, options)';
  if ('default' in value) return '. Pass the default export of the module, not the module';
  if ('kind' in value)
    return '. Create one from a parsed document with buildASTSchema or makeExecutableSchema';
  return 'typeDefs' in value ? '. Create one with makeExecutableSchema({ typeDefs, resolvers })' : '';
}
