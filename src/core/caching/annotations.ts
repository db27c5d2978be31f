import { type GraphQLSchema, isCompositeType, isInterfaceType, isObjectType } from 'graphql';
import type { CacheHint } from '../../../types/caching.ts';
import { directivesOf, type SchemaElement } from '../schema/directives.ts';
import { assertHint } from './hints.ts';

/** The hint of a type or field in the schema. With `inheritMaxAge` it has no lifetimes. */
interface Annotation extends CacheHint {
  readonly inheritMaxAge?: boolean | undefined;
}

const DIRECTIVE = 'cacheControl';
const NONE: Annotation = Object.freeze({});
const annotations = new WeakMap<object, Annotation>();

/**
 * Returns the hint of a type or field: of `@cacheControl` in SDL, or of `extensions` in schemas that are
 * created in code. The directive of a type precedes those of its extensions.
 *
 * @throws TypeError (code `ERR_OPTION`) for a wrong value.
 */
export function hintAnnotationOf(element: SchemaElement): Annotation {
  let annotation = annotations.get(element);
  if (annotation === undefined) {
    annotation = readAnnotation(element);
    annotations.set(element, annotation);
  }
  return annotation;
}

/**
 * Checks all hints of a schema.
 *
 * @throws TypeError (code `ERR_OPTION`) for a wrong value.
 */
export function assertAnnotations(schema: GraphQLSchema): void {
  for (const type of Object.values(schema.getTypeMap())) {
    if (!isCompositeType(type)) continue;
    hintAnnotationOf(type);
    if (isObjectType(type) || isInterfaceType(type))
      Object.values(type.getFields()).forEach(hintAnnotationOf);
  }
}

function readAnnotation(element: SchemaElement): Annotation {
  const [given] = directivesOf(element, DIRECTIVE);
  if (given === undefined) return NONE;
  assertHint(given, `@${DIRECTIVE} of "${element.name}"`);
  const { inheritMaxAge, maxAge, sharedMaxAge, scope, vary } = given as Annotation;
  return Object.freeze(
    inheritMaxAge === true ? { inheritMaxAge, scope, vary } : { maxAge, sharedMaxAge, scope, vary },
  );
}
