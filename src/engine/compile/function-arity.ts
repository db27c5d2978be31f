/*
 * `info` costs an object per field, so it is only made for functions that may read it. `length` alone is not enough: it
 * leaves out rest and default parameters, and `arguments` reads anything. The source text is the only other evidence. The
 * patterns err to one side: a false match costs an unused `info`, and no match is wrong.
 */

/** Whether a function may read its argument number `index`, counted from 0. */
export function mayReadArgument(fn: (...args: never[]) => unknown, index: number): boolean {
  if (fn.length > index) return true;
  const source = Function.prototype.toString.call(fn);
  // Bound and native functions and proxies have no readable source.
  return (
    /\.\.\.|\barguments\b|\beval\b|\[native code\]/.test(source) || /=(?!>)|\/[/*]/.test(parameters(source))
  );
}

/** The source up to the body: to the arrow, or to the brace after the parameters. It may contain more. */
function parameters(source: string): string {
  const arrow = source.indexOf('=>');
  const brace = source.indexOf('{');
  const end = Math.min(arrow < 0 ? source.length : arrow, brace < 0 ? source.length : brace);
  // A destructuring parameter begins with a brace, too: then the whole source is tested.
  return /[({,]\s*\{|\(\s*\[/.test(source.slice(0, end + 1)) ? source : source.slice(0, end);
}
