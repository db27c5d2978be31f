import * as graphql from 'graphql';

/** Whether the installed graphql-js is version 17 or newer. */
export const V17: boolean = graphql.versionInfo.major >= 17;

/** The versions of graphql in `peerDependencies`. */
export const SUPPORTED_VERSIONS = '^16.15.0 || ^17.1.0';

/**
 * Whether a version is supported. The validation of older ones takes minutes for some documents of 2 kB, and
 * they create other errors and suggestions.
 */
export function isSupportedVersion({
  major,
  minor,
}: {
  readonly major: number;
  readonly minor: number;
}): boolean {
  if (major === 16) return minor >= 15;
  return major === 17 ? minor >= 1 : major > 17;
}

/**
 * Returns an export that only some versions of graphql have, or undefined. Bundlers refuse a property access
 * to an export that is missing.
 */
export function optionalExport(name: string): unknown {
  return Reflect.get(graphql, name);
}
