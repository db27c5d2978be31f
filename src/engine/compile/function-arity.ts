/*
 * `info` costs an object per field, so it is only created for functions that may read it. `length` is not
 * enough: it excludes rest and default parameters, and code may redefine it. So the source text is analysed
 * too. If it cannot be analysed the result is true, which costs an unused `info`; a wrong false would break a
 * resolver.
 */

/** Whether a function may read its argument number `index`, counted from 0. */
export function mayReadArgument(fn: (...args: never[]) => unknown, index: number): boolean {
  if (fn.length > index) return true;
  const source = Function.prototype.toString.call(fn);
  // Bound and native functions and proxies have no readable source.
  if (/\barguments\b|\beval\b|\[native code\]/.test(source)) return true;
  const count = countParameters(source);
  return count === undefined || count > index;
}

const LIST_START = /^(?:async\b\s*)?(?:function\b\s*)?\*?\s*[\w$]*\s*\(/;
const SINGLE_PARAMETER = /^(?:async\s+)?[\w$]+\s*=>/;
/** Strings, comments, defaults, rest parameters and calls need a real parser. */
const COMPLEX = /["'`/=(]|\.\.\./;

/**
 * The number of parameters in the source of a function; undefined if they are not simple names and patterns.
 */
function countParameters(source: string): number | undefined {
  if (SINGLE_PARAMETER.test(source)) return 1;
  const start = LIST_START.exec(source)?.[0].length;
  if (start === undefined) return undefined;
  const list = source.slice(start, source.indexOf(')', start));
  if (COMPLEX.test(list)) return undefined;
  let depth = 0;
  let count = 0;
  for (const part of list.split(/([[\]{},])/)) {
    if (part === '{' || part === '[') depth += 1;
    else if (part === '}' || part === ']') depth -= 1;
    else if (part === ',' && depth === 0) count += 1;
  }
  return list.trim() === '' ? 0 : count + (/,\s*$/.test(list) ? 0 : 1);
}
