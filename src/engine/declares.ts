/**
 * Whether a function may look at its argument number `index` (from 0). Its `length` tells, unless the source holds a
 * rest parameter, a default or `arguments`; where the source cannot be read (bound and native functions, proxies), it may.
 */
export function mayUseArgument(fn: (...args: never[]) => unknown, index: number): boolean {
  if (fn.length > index) return true;
  const source = Function.prototype.toString.call(fn);
  return (
    /\.\.\.|\barguments\b|\beval\b|\[native code\]/.test(source) || /=(?!>)|\/[/*]/.test(parameters(source))
  );
}

/** The source up to the body: an arrow, or the brace behind the parameters. Too much of it does no harm. */
function parameters(source: string): string {
  const arrow = source.indexOf('=>');
  const brace = source.indexOf('{');
  const end = Math.min(arrow < 0 ? source.length : arrow, brace < 0 ? source.length : brace);
  // A pattern among the parameters begins with a brace too: then everything is looked at.
  return /[({,]\s*\{|\(\s*\[/.test(source.slice(0, end + 1)) ? source : source.slice(0, end);
}
