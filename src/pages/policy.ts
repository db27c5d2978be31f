// Content-Security-Policy (https://www.w3.org/TR/CSP3/): the inline code of a page that a policy allows.

/** Sources that allow the inline code of one page: hashes or a nonce. */
export interface InlineSources {
  readonly scripts: readonly string[];
  /** Hashes of external scripts, which count under `'strict-dynamic'` only: elsewhere their origin allows them. */
  readonly external: readonly string[];
  readonly styles: readonly string[];
}

type Directives = Map<string, readonly string[]>;

// The directives that decide about an element or an attribute. The first one that a policy has counts (CSP3 §6.8.3).
const SCRIPTS = ['script-src-elem', 'script-src', 'default-src'];
const STYLES = ['style-src-elem', 'style-src', 'default-src'];
const ATTRIBUTES: Readonly<Record<'script' | 'style', readonly string[]>> = {
  script: ['script-src-attr', 'script-src', 'default-src'],
  style: ['style-src-attr', 'style-src', 'default-src'],
};

/** Adds sources to each policy of a header, which may be a list. A policy that restricts no inline code stays as it is. */
export function extendPolicy(header: string, sources: InlineSources): string {
  return header
    .split(',')
    .map((policy) => extendOne(policy.trim(), sources))
    .join(', ');
}

function extendOne(policy: string, { scripts, external, styles }: InlineSources): string {
  const directives = parsePolicy(policy);
  const isStrict = sourcesOf(directives, SCRIPTS)?.some(isStrictDynamic) === true;
  const isScriptChanged = allow(directives, SCRIPTS, isStrict ? [...scripts, ...external] : scripts);
  const isStyleChanged = allow(directives, STYLES, styles);
  if (!isScriptChanged && !isStyleChanged) return policy;
  return [...directives].map(([name, list]) => [name, ...list].join(' ')).join('; ');
}

/** Whether a policy refuses the attributes of a kind, such as `onclick`. No hash of an element allows them. */
export function refusesAttributes(policy: string, kind: 'script' | 'style'): boolean {
  const sources = sourcesOf(parsePolicy(policy), ATTRIBUTES[kind]);
  return sources !== undefined && !allowsInline(sources) && !sources.includes("'unsafe-hashes'");
}

/** Whether a policy ignores the origins of scripts, so that each external script needs a hash or a nonce. */
export function needsScriptHashes(policy: string): boolean {
  return sourcesOf(parsePolicy(policy), SCRIPTS)?.some(isStrictDynamic) === true;
}

function parsePolicy(policy: string): Directives {
  const directives: Directives = new Map();
  for (const part of policy.split(';')) {
    const [name = '', ...sources] = part.trim().split(/\s+/);
    // A directive that is repeated does not count (CSP3 §2.2.1).
    if (name !== '' && !directives.has(name.toLowerCase())) directives.set(name.toLowerCase(), sources);
  }
  return directives;
}

function sourcesOf(directives: Directives, names: readonly string[]): readonly string[] | undefined {
  const name = names.find((each) => directives.has(each));
  return name === undefined ? undefined : directives.get(name);
}

function allow(directives: Directives, names: readonly string[], wanted: readonly string[]): boolean {
  const sources = sourcesOf(directives, names);
  if (sources === undefined || allowsInline(sources)) return false;
  const missing = wanted.filter((source) => !sources.includes(source));
  if (missing.length === 0) return false;
  const name = names.find((each) => directives.has(each)) as string;
  // `default-src` also applies to images and others, so that the sources get a directive of their own.
  const target = name === 'default-src' ? (names[1] as string) : name;
  directives.set(target, [...sources.filter((source) => source.toLowerCase() !== "'none'"), ...missing]);
  return true;
}

/** A hash or a nonce turns `'unsafe-inline'` off (CSP3 §6.7.3.2), so that none may be added to it. */
function allowsInline(sources: readonly string[]): boolean {
  const isInline = sources.some((source) => source.toLowerCase() === "'unsafe-inline'");
  return (
    isInline && !sources.some((source) => /^'(?:nonce-|sha(?:256|384|512)-|strict-dynamic')/i.test(source))
  );
}

const isStrictDynamic = (source: string): boolean => source.toLowerCase() === "'strict-dynamic'";
