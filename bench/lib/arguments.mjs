/** Returns the value of the argument `--name=value` of the program, as text, or the fallback. */
export function given(name, fallback) {
  return process.argv.find((word) => word.startsWith(`--${name}=`))?.slice(name.length + 3) ?? fallback;
}
