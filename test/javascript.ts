import { transformSync } from '@swc/core';

/**
 * TypeScript as JavaScript, for a process that starts with the build of espalier: a loader that compiles the sources takes
 * five times as long as everything else that such a process does.
 */
export const toJavaScript = (code: string): string =>
  transformSync(code, { jsc: { parser: { syntax: 'typescript' }, target: 'es2022' } }).code;
