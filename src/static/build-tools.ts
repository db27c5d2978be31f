// The names that build tools give to files with a hash of their content. A file that a pattern misses is revalidated, and one
// that it takes wrongly would be stale for a year: so a hash has to look like one, and not like a word or a date.

/** The files of each build tool that never change under their name, by their path below the root. */
export const HASHED_FILES: Readonly<Record<string, RegExp>> = {
  astro: /^\/_astro\//,
  next: /^\/_next\/static\//,
  // Eight characters of base64url.
  vite: /^\/assets\/.*-(?=[\w-]*[A-Z0-9])(?!\d{8}\.)(?![A-Z][a-z]{7}\.)[\w-]{8}\.[\w.]+$/,
  // Hexadecimal digits, with a word such as `chunk` behind them.
  webpack: /[./-](?=[0-9a-f]*\d)(?=\d*[a-f])[0-9a-f]{8,32}\.[\w.]+$/,
  // Eight characters of base32. Folders of languages are above.
  angular: /\/[^/]*-[A-Z2-7]{8}\.m?(?:js|css)(?:\.map)?$|\/media\/[^/]*-[A-Z2-7]{8}\.\w+$/,
};
