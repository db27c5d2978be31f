/** A call of a public function with arguments of any type, as code without type checks makes it. */
type Call = () => unknown;

export type Target = (...given: never[]) => unknown;

/** A call of a function for each list of arguments. */
export const calls = (target: Target, ...lists: readonly (readonly unknown[])[]): Call[] =>
  lists.map((list) => () => Reflect.apply(target, undefined, list));

/** What the error of a call says to the user. Errors that are not those of options have their name and code before it. */
export async function thrownBy(call: Call): Promise<string> {
  try {
    await call();
  } catch (error) {
    const { name, code, message } = error as Error & { code?: string };
    const text = message
      .replace(/ \(see https:\/\/\S*\/docs\/([\w-]+)\.md\)$/, ' (docs/$1.md)')
      // What a long object contains depends on its package.
      .replace(/ is \{.*?\.\.\.;/, ' is {...};');
    return name === 'TypeError' && code === 'ERR_OPTION' ? text : `${name} ${code}: ${text}`;
  }
  return `nothing was thrown by ${call}`;
}
