import { wrongOption } from '../options/resolve-options.ts';
import { GRAPHIQL_OPTIONS } from '../options/scopes.ts';

/** Extra sources by directive, as the option `csp` gives them. */
export type ExtraSources = Readonly<Record<string, string | readonly string[]>>;

// Monaco writes style attributes through HTML strings, which no nonce can cover, and draws squiggles from data: images.
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

/** The strict policy with a few more sources (CSP 3 §2.2), as a function of the response's nonce. */
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

/** Refuses what could end a directive and begin another, or could not stand in a header. */
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
