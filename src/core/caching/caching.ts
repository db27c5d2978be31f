import { GraphQLSchema, getNamedType, isCompositeType } from 'graphql';
import type { GuardedStore } from '../../cache/guarded-store.ts';
import type { Caching, ExecutionCaching } from '../../execution/types.ts';
import { assertAnnotations, hintAnnotationOf } from './annotations.ts';
import { ExecutionPolicy } from './execution-policy.ts';
import { FieldControl } from './field-control.ts';
import { OperationPolicy } from './operation-policy.ts';
import { objectTagsOf } from './operation-tags.ts';
import type { CachingSettings } from './options.ts';
import { SchemaHints } from './schema-hints.ts';
import { hasTags } from './tag-formats.ts';

/**
 * Creates the cache policies of a handler.
 *
 * @param store - the response cache, whose entries mutations and events invalidate
 * @throws TypeError (code `ERR_OPTION`) for a wrong `@cacheControl` or `@cacheTag` in the schema.
 */
export function createCaching(
  schema: unknown,
  { defaultMaxAge }: Pick<CachingSettings, 'defaultMaxAge'>,
  store: GuardedStore | undefined,
): Caching {
  if (schema instanceof GraphQLSchema) {
    assertAnnotations(schema);
    hasTags(schema);
  }
  const hints = new SchemaHints(defaultMaxAge);
  return {
    policyOf(operation, account) {
      const policy = new OperationPolicy(operation, hints, account);
      const invalidated = operation.operation.operation === 'query' ? undefined : store;
      return {
        of: (variables) => policy.of(variables),
        start: (variables) => new ExecutionPolicy(policy, variables, invalidated),
        startWrite: (variables) => invalidated && new ExecutionPolicy(policy, variables, invalidated),
      };
    },
    isCounted: (definition, isRootField) =>
      isRootField ||
      isCompositeType(getNamedType(definition.type)) ||
      Object.values(hintAnnotationOf(definition)).some((value) => value !== undefined),
    objectTagsOf,
    controlFor: (execution: ExecutionCaching | undefined, definition, isRoot) =>
      new FieldControl(execution as ExecutionPolicy | undefined, definition, isRoot),
  };
}
