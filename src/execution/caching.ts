// The types of caching that engines and transports use. The policies are in core/caching.
import type {
  DocumentNode,
  GraphQLField,
  GraphQLObjectType,
  GraphQLResolveInfo,
  GraphQLSchema,
  OperationDefinitionNode,
} from 'graphql';
import type { CacheControl, CacheHint, CachePolicy } from '../../types/caching.ts';

/** A valid operation and its document. */
export interface CachedOperation {
  readonly schema: GraphQLSchema;
  readonly document: DocumentNode;
  readonly operation: OperationDefinitionNode;
}

/** Receives the `info` of each field, with its parent value, before its resolver is called. */
export type FieldTracker = (info: GraphQLResolveInfo, source: unknown) => void;

/** The cache policies of one handler. Part of the settings of engines if caching is on. */
export interface Caching {
  /** Computes the static policy of an operation. `charge` counts its memory, as in `MemoryAccount`. */
  policyOf(operation: CachedOperation, account: { charge(bytes: number): boolean }): OperationCaching;
  /**
   * Whether a field has a static hint that a resolver may replace. `isRootField`: a field of the operation's
   * root type.
   */
  isCounted(definition: GraphQLField<unknown, unknown>, isRootField: boolean): boolean;
  /** The tags of objects of a type in which a field is executed; undefined if there are none. */
  objectTagsOf(type: GraphQLObjectType, definition: GraphQLField<unknown, unknown>): ObjectTags | undefined;
  /**
   * Creates `info.cacheControl` of one call of a resolver. Its hints have no effect if `execution` is
   * undefined: over sockets nothing is cached.
   */
  controlFor(
    execution: ExecutionCaching | undefined,
    definition: GraphQLField<unknown, unknown>,
    isRoot: boolean,
  ): CacheControl;
}

/** Tags whose values are properties of an object. */
export type ObjectTags = readonly {
  /** Returns the tags of an object; undefined if a property is missing. */
  of(source: unknown): readonly string[] | undefined;
}[];

/** The static cache policy of a prepared operation, without the hints of resolvers. */
export interface OperationCaching {
  /** Returns the policy for the variables of a request, which decide about `@skip` and `@include`. */
  of(variables: Record<string, unknown> | undefined): CachePolicy;
  /** Begins the policy of one execution. */
  start(variables: Record<string, unknown> | undefined): ExecutionCaching;
  /** Begins the execution of a mutation or an event; undefined for queries, and without a response cache. */
  startWrite(variables: Record<string, unknown> | undefined): ExecutionCaching | undefined;
}

/** The cache policy of one execution: the static policy, changed by `info.cacheControl`. */
export interface ExecutionCaching {
  /** Counts the execution of a field for which `isCounted` is true. */
  count(definition: GraphQLField<unknown, unknown>, isRoot: boolean): void;
  /** The engine reports fields through a guard. If it reports none, the result is not cacheable. */
  expectFields(): void;
  /** Adds tags to the result. */
  addTags(tags: readonly string[]): void;
  /** Adds the tags of an object that is executed. */
  addObjectTags(tags: ObjectTags, source: unknown): void;
  /** Returns the tags of the result, after the execution. */
  tags(): readonly string[];
  /**
   * Removes the results with the tags of this one from the response cache, after a mutation or an event. Undefined
   * if that is done, or a promise that is resolved soon and never rejects.
   */
  invalidate(): Promise<void> | undefined;
  /** Makes the policy of the whole result stricter. */
  restrict(hint: CacheHint): void;
  /** Returns the policy of the result, after the execution. */
  policy(): CachePolicy;
}
