// Rollup, Vite and esbuild use eight characters of base64url or base32; webpack, Parcel and Next.js use 8 to
// 64 hexadecimal digits, and may add a word such as `chunk`.
const HASH = /(?<=[^/][-._])(?:[\w-]{8}|[0-9a-f]{16,64})(?=(?:\.(?:chunk|bundle|module|min))?\.\w{1,8}$)/;

// Needs no escapes in a URL, a URLPattern and a structured field. A dotfile is never a dictionary.
const PLAIN_NAME = /^[\w~-][\w.~-]{0,254}$/;

/**
 * Returns the pattern of all versions of a file, relative to its directory: `app-*.js` for
 * `app-3f2a91bc.js`. Undefined for a name without a hash.
 */
export function patternOf(name: string): string | undefined {
  if (!PLAIN_NAME.test(name)) return undefined;
  const pattern = name.replace(HASH, '*');
  return pattern === name ? undefined : pattern;
}

/** Splits a path below the root into its directory, with a slash at the end, and its last segment. */
export function splitPath(filePath: string): { readonly folder: string; readonly name: string } {
  const start = filePath.lastIndexOf('/') + 1;
  return { folder: filePath.slice(0, start), name: filePath.slice(start) };
}
