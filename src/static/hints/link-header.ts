import { readHead, type StartTag } from './read-head.ts';

/** Bytes at the start of a page that are searched for its head. */
export const HEAD_BYTES: number = 64 * 1024;

// Proxies limit the size of all headers, often to 8 KiB.
const MAX_LENGTH = 3072;
const PRELOADED = new Set(['font', 'style', 'script']);
const DUMMY = 'http://relative.invalid';

/**
 * Returns the value of a `Link` header for the stylesheets, module scripts and fonts in the head of a page
 * (RFC 8288, HTML §4.6.7); undefined if there are none.
 */
export function linkHeaderOf(html: Buffer): string | undefined {
  const tags = readHead(html.toString('utf8', 0, Math.min(html.length, HEAD_BYTES)));
  const base = tags.find(({ name, attributes }) => name === 'base' && attributes.has('href'));
  const baseHref = base?.attributes.get('href');
  const links = new Set<string>();
  let length = 0;
  for (const tag of tags) {
    const link = linkOf(tag, baseHref);
    if (link === undefined || links.has(link)) continue;
    if (length + link.length > MAX_LENGTH) break;
    length += link.length + 2;
    links.add(link);
  }
  return links.size === 0 ? undefined : [...links].join(', ');
}

/** Returns the link of one tag; undefined if browsers do not load it immediately. */
function linkOf({ name, attributes }: StartTag, base: string | undefined): string | undefined {
  if (name === 'script') {
    const isModule = attributes.get('type')?.trim().toLowerCase() === 'module';
    return isModule ? format(attributes.get('src'), base, 'rel=modulepreload', attributes) : undefined;
  }
  if (name !== 'link' || !appliesToScreens(attributes)) return undefined;
  const relations = (attributes.get('rel') ?? '').toLowerCase().split(/\s+/);
  const href = attributes.get('href');
  if (relations.includes('modulepreload')) return format(href, base, 'rel=modulepreload', attributes);
  if (relations.includes('stylesheet')) {
    const isOff = relations.includes('alternate') || attributes.has('disabled');
    return isOff ? undefined : format(href, base, 'rel=preload; as=style', attributes);
  }
  const kind = attributes.get('as')?.toLowerCase() ?? '';
  const isPreloaded = relations.includes('preload') && PRELOADED.has(kind);
  return isPreloaded ? format(href, base, `rel=preload; as=${kind}`, attributes) : undefined;
}

function appliesToScreens(attributes: StartTag['attributes']): boolean {
  return /^(?:all|screen|)$/i.test((attributes.get('media') ?? '').trim());
}

function format(
  href: string | undefined,
  base: string | undefined,
  relation: string,
  attributes: StartTag['attributes'],
): string | undefined {
  const url = href === undefined ? undefined : resolveUrl(href.trim(), base);
  if (url === undefined) return undefined;
  const parts = [`<${url}>`, relation];
  const crossOrigin = attributes.get('crossorigin')?.toLowerCase();
  if (crossOrigin !== undefined) {
    parts.push(crossOrigin === 'use-credentials' ? 'crossorigin=use-credentials' : 'crossorigin');
  }
  const integrity = attributes.get('integrity')?.trim();
  // Without the same integrity, browsers do not use the preloaded response.
  if (integrity !== undefined && integrity !== '') {
    if (!/^[\w+/=-]+$/.test(integrity)) return undefined;
    parts.push(`integrity=${integrity}`);
  }
  return parts.join('; ');
}

/**
 * Returns a URL for a `Link` header, which is relative to the URL of the page like the URLs in the page. With
 * a `base` element, only a base that is absolute can be applied here.
 */
function resolveUrl(href: string, base: string | undefined): string | undefined {
  if (href === '' || (/^[a-z][a-z\d+.-]*:/i.test(href) && !/^https?:/i.test(href))) return undefined;
  // A URL with a host does not depend on the base.
  if (base === undefined || /^(?:https?:)?\/\//i.test(href))
    return href.replace(/[^\x21-\x7e]|[<>"\\^`{|}]/gu, encode);
  if (!/^(?:https?:)?\//i.test(base.trim())) return undefined;
  try {
    const { href: resolved } = new URL(href, new URL(base.trim(), DUMMY));
    return resolved.startsWith(`${DUMMY}/`) ? resolved.slice(DUMMY.length) : resolved;
  } catch {
    return undefined;
  }
}

function encode(character: string): string {
  // encodeURIComponent throws for a surrogate without its counterpart.
  return /^\p{Surrogate}$/u.test(character) ? '%EF%BF%BD' : encodeURIComponent(character);
}
