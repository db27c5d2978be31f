import type { GraphQLSchema } from 'graphql';

/** Runs `load` for one document at a time. Concurrent requests for the same document share the result. */
type LoadQueue<V> = (schema: GraphQLSchema, query: string, load: () => Promise<V>) => Promise<V>;

/**
 * Creates a queue that loads one document at a time, which bounds the memory of many simultaneous requests.
 */
export function createLoadQueue<V>(): LoadQueue<V> {
  const bySchema = new WeakMap<GraphQLSchema, Map<string, Promise<V>>>();
  let last: Promise<unknown> = Promise.resolve();
  return (schema, query, load) => {
    let loading = bySchema.get(schema);
    if (loading === undefined) {
      loading = new Map();
      bySchema.set(schema, loading);
    }
    const known = loading.get(query);
    if (known !== undefined) return known;
    const result = last.then(load);
    loading.set(query, result);
    const remove = (): unknown => loading.delete(query);
    last = result.then(remove, remove);
    return result;
  };
}
