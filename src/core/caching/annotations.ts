import {
  type ConstDirectiveNode,
  type ConstValueNode,
  type GraphQLSchema,
  isCompositeType,
  isInterfaceType,
  isObjectType,
  Kind,
} from 'graphql';
import type { CacheHint } from '../../../types/caching.ts';
import { isObject } from '../../options/rules.ts';
import { assertHint } from './hints.ts';

/** The hint of a type or field in the schema. With `inheritMaxAge` it has no lifetimes. */
export interface Annotation extends CacheHint {
  readonly inheritMaxAge?: boolean | undefined;
}

/** A type or field that may have the directive. */
interface Annotated {
  readonly name: string;
  readonly astNode?: WithDirectives | null | undefined;
  readonly extensionASTNodes?: readonly WithDirectives[] | undefined;
  readonly extensions?: unknown;
}

interface WithDirectives {
  readonly directives?: readonly ConstDirectiveNode[] | undefined;
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
export function annotationOf(element: Annotated): Annotation {
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
    annotationOf(type);
    if (isObjectType(type) || isInterfaceType(type)) Object.values(type.getFields()).forEach(annotationOf);
  }
}

function readAnnotation({ name, astNode, extensionASTNodes = [], extensions }: Annotated): Annotation {
  for (const node of [astNode, ...extensionASTNodes]) {
    const directive = node?.directives?.find((candidate) => candidate.name.value === DIRECTIVE);
    if (directive !== undefined) return toAnnotation(argumentsOf(directive), name);
  }
  const given = isObject(extensions) ? fromExtensions(extensions) : undefined;
  return given === undefined ? NONE : toAnnotation(given, name);
}

/** Reads `extensions.cacheControl`, or `extensions.directives` in both forms of @graphql-tools/utils. */
function fromExtensions(extensions: Readonly<Record<string, unknown>>): unknown {
  const { directives } = extensions;
  if (Array.isArray(directives)) {
    const found = directives.find((entry) => isObject(entry) && entry['name'] === DIRECTIVE);
    if (found !== undefined) return found.args ?? {};
  } else if (isObject(directives) && directives[DIRECTIVE] !== undefined) {
    return [directives[DIRECTIVE]].flat()[0];
  }
  return extensions[DIRECTIVE];
}

function toAnnotation(given: unknown, name: string): Annotation {
  assertHint(given, `@${DIRECTIVE} of "${name}"`);
  const { inheritMaxAge, maxAge, sharedMaxAge, scope, vary } = given as Annotation;
  return Object.freeze(
    inheritMaxAge === true ? { inheritMaxAge, scope, vary } : { maxAge, sharedMaxAge, scope, vary },
  );
}

function argumentsOf(directive: ConstDirectiveNode): Readonly<Record<string, unknown>> {
  return Object.fromEntries(
    (directive.arguments ?? []).map(({ name, value }) => [name.value, literalValue(value)]),
  );
}

function literalValue(node: ConstValueNode): unknown {
  switch (node.kind) {
    case Kind.INT:
    case Kind.FLOAT:
      return Number(node.value);
    case Kind.LIST:
      return node.values.map(literalValue);
    case Kind.NULL:
    case Kind.OBJECT:
      return undefined;
    default:
      return node.value;
  }
}
