import { wrongOption } from '../options/resolve-options.ts';
import { GRAPHIQL_OPTIONS } from '../options/scopes.ts';

/** Extra sources by directive, from the option `csp`. */
export type ExtraSources = Readonly<Record<string, string | readonly string[]>>;

// Monaco sets style attributes through HTML strings, which no nonce covers, and draws underlines from data:
// images.
const STRICT: Readonly<Record<string, readonly string[]>> = {
  'default-src': ["'none'"],
  'script-src': ["'self'"],
  'style-src': ["'self'", "'nonce-'"],
  'style-src-attr': ["'unsafe-inline'"],
  'worker-src': ["'self'"],
  'connect-src': ["'self'"],
  'font-src': ["'self'"],
  'img-src': ["'self'", 'data:'],
  'base-uri': ["'none'"],
  'form-action': ["'none'"],
  'frame-ancestors': ["'none'"],
};

/** The strict policy with extra sources (CSP 3 §2.2), as a function of the response's nonce. */
export function strictPolicy(extra: ExtraSources): (nonce: string) => string {
  const directives = new Map(Object.entries(STRICT));
  for (const [name, sources] of Object.entries(extra)) {
    const known = directives.get(name)?.filter((source) => source !== "'none'") ?? [];
    const merged = [...new Set([...known, ...[sources].flat()])];
    directives.set(name, merged.length === 0 ? ["'none'"] : merged);
  }
  const text = Array.from(directives, ([name, sources]) => `${name} ${sources.join(' ')}`).join('; ');
  const [before, after] = text.split("'nonce-'") as [string, string];
  return (nonce) => `${before}'nonce-${nonce}'${after}`;
}

/** Rejects values that could end a directive and begin another, or are not valid in a header. */
export function checkSources(extra: ExtraSources): void {
  for (const [name, sources] of Object.entries(extra)) {
    const values: readonly unknown[] = [sources].flat();
    if (/^[a-z-]+$/.test(name) && values.every(isSource)) continue;
    const accepted = 'directives as in the header, each with one source or a list of sources';
    throw wrongOption(GRAPHIQL_OPTIONS, 'csp', { [name]: sources }, accepted);
  }
}

function isSource(value: unknown): boolean {
  return typeof value === 'string' && /^[!-+\--:<-~]+$/.test(value);
}
