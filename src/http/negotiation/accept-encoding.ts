/** How much a client likes a coding, 0 to 1; 0 is a refusal. */
export type EncodingWeights = (coding: string) => number;

const WEIGHT = /^[ \t]*q=(0(?:\.\d{0,3})?|1(?:\.0{0,3})?)[ \t]*$/i;

/**
 * Reads `Accept-Encoding` (RFC 9110 §12.5.3). Without the header only identity is wanted; with it, identity is
 * acceptable unless refused by name or by `*;q=0`, but liked less than any coding that is named.
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
  // A weight that cannot be read is no consent.
  return parameters.length === 0 ? 1 : 0;
}
