import { GraphQLSchema, getNamedType, isCompositeType } from 'graphql';
import type { Caching, ExecutionCaching } from '../../execution/caching.ts';
import { annotationOf, assertAnnotations } from './annotations.ts';
import { ExecutionPolicy } from './execution-policy.ts';
import { FieldControl } from './field-control.ts';
import { OperationPolicy } from './operation-policy.ts';
import type { CachingSettings } from './options.ts';
import { SchemaHints } from './schema-hints.ts';

/**
 * Creates the cache policies of a handler.
 *
 * @throws TypeError (code `ERR_OPTION`) for a wrong `@cacheControl` in the schema.
 */
export function createCaching(
  schema: unknown,
  { defaultMaxAge }: Pick<CachingSettings, 'defaultMaxAge'>,
): Caching {
  if (schema instanceof GraphQLSchema) assertAnnotations(schema);
  const hints = new SchemaHints(defaultMaxAge);
  return {
    policyOf(operation, account) {
      const policy = new OperationPolicy(operation, hints, account);
      return {
        of: (variables) => policy.of(variables),
        start: (variables) => new ExecutionPolicy(policy, variables),
      };
    },
    isCounted: (definition, isRootField) =>
      isRootField ||
      isCompositeType(getNamedType(definition.type)) ||
      Object.values(annotationOf(definition)).some((value) => value !== undefined),
    controlFor: (execution: ExecutionCaching | undefined, definition, isRoot) =>
      new FieldControl(execution as ExecutionPolicy | undefined, definition, isRoot),
  };
}
