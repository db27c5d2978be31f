/** Returns the weight of a coding, 0 to 1; 0 means not acceptable. */
export type EncodingWeights = (coding: string) => number;

const WEIGHT = /^[ \t]*q=(0(?:\.\d{0,3})?|1(?:\.0{0,3})?)[ \t]*$/i;

/**
 * Parses `Accept-Encoding` (RFC 9110 §12.5.3). Without the header only identity is acceptable. With it,
 * identity is acceptable unless `identity;q=0` or `*;q=0` excludes it; its weight is lower than that of any
 * coding in the list.
 */
export function parseAcceptEncoding(header: string | undefined): EncodingWeights {
  if (header === undefined) return (coding) => (coding === 'identity' ? 1 : 0);
  const named = new Map<string, number>();
  for (const part of header.split(',')) {
    const [coding = '', ...parameters] = part.split(';');
    const name = coding.trim().toLowerCase();
    if (name !== '') named.set(name === 'x-gzip' ? 'gzip' : name, weightOf(parameters));
  }
  const rest = named.get('*');
  return (coding) => named.get(coding) ?? rest ?? (coding === 'identity' ? 0.0001 : 0);
}

function weightOf(parameters: readonly string[]): number {
  for (const parameter of parameters) {
    const match = WEIGHT.exec(parameter);
    if (match !== null) return Number(match[1]);
  }
  // A malformed weight excludes the coding.
  return parameters.length === 0 ? 1 : 0;
}
