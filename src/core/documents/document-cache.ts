import type { DocumentNode, GraphQLSchema } from 'graphql';
import { registerGauge } from '../../diagnostics/stats.ts';

/** Documents by schema and text, bounded by the bytes that they retain. */
interface DocumentCache<V> {
  get(schema: GraphQLSchema, query: string): V | undefined;
  /** Stores a document, unless it is larger than one document may be. */
  set(schema: GraphQLSchema, query: string, value: V, bytes: number): void;
  /**
   * Adds to the bytes of a document. Returns false if it is not in the cache or is now larger than one
   * document may be.
   */
  charge(schema: GraphQLSchema, query: string, bytes: number): boolean;
}

/** The largest document, as a fraction of the cache. */
const SHARE = 1 / 8;

interface Entry<V> {
  readonly value: V;
  bytes: number;
}

class Generation<V> {
  bytes = 0;
  entries = 0;
  /** A WeakMap, so that the cache does not keep an unused schema alive. */
  readonly #bySchema = new WeakMap<GraphQLSchema, Map<string, Entry<V>>>();
  #schema: GraphQLSchema | undefined;
  #entries: Map<string, Entry<V>> | undefined;

  get(schema: GraphQLSchema, query: string): Entry<V> | undefined {
    // Most handlers have one schema, so the last schema needs no lookup.
    if (schema !== this.#schema) {
      this.#schema = schema;
      this.#entries = this.#bySchema.get(schema);
    }
    return this.#entries?.get(query);
  }

  add(schema: GraphQLSchema, query: string, entry: Entry<V>): void {
    let entries = this.#bySchema.get(schema);
    if (entries === undefined) {
      entries = new Map();
      this.#bySchema.set(schema, entries);
      this.#schema = undefined;
    }
    const replaced = entries.get(query);
    if (replaced === undefined) this.entries++;
    else this.bytes -= replaced.bytes;
    entries.set(query, entry);
    this.bytes += entry.bytes;
  }
}

/**
 * Creates a cache of two generations. When the young generation is full, it replaces the old one, whose
 * entries are evicted unless they were used. A hit in the young generation is one lookup; a
 * least-recently-used list would have to be updated.
 */
export function createDocumentCache<V>(maxBytes: number): DocumentCache<V> {
  let young = new Generation<V>();
  let old = new Generation<V>();

  function add(schema: GraphQLSchema, query: string, entry: Entry<V>): void {
    if ((young.bytes + entry.bytes) * 2 > maxBytes) {
      old = young;
      young = new Generation();
    }
    young.add(schema, query, entry);
  }

  const cache: DocumentCache<V> = {
    get(schema, query) {
      const entry = young.get(schema, query);
      if (entry !== undefined) return entry.value;
      const stale = old.get(schema, query);
      if (stale !== undefined) add(schema, query, stale);
      return stale?.value;
    },
    set(schema, query, value, bytes) {
      if (bytes <= maxBytes * SHARE) add(schema, query, { value, bytes });
    },
    charge(schema, query, bytes) {
      const isYoung = young.get(schema, query) !== undefined;
      const generation = isYoung ? young : old;
      const entry = generation.get(schema, query);
      if (entry === undefined) return false;
      entry.bytes += bytes;
      generation.bytes += bytes;
      if (generation.bytes * 2 > maxBytes) {
        if (isYoung) {
          old = young;
          young = new Generation();
        } else old = new Generation();
      }
      return entry.bytes <= maxBytes * SHARE;
    },
  };
  registerGauge(cache, {
    kind: 'documents',
    read: () => ({ entries: young.entries + old.entries, bytes: young.bytes + old.bytes, maxBytes }),
  });
  return cache;
}

/**
 * Measured: bytes per token of a document, with its nodes and their locations, and per character of its text.
 */
const TOKEN_BYTES = 550;
const CHARACTER_BYTES = 2;
const ENTRY_BYTES = 2000;

/** Estimates the bytes that a cached text retains; `document` is undefined if its nodes are not kept. */
export function retainedBytes(query: string, document: DocumentNode | undefined): number {
  const tokens = document === undefined ? 0 : (document.tokenCount ?? query.length);
  return ENTRY_BYTES + query.length * CHARACTER_BYTES + tokens * TOKEN_BYTES;
}
