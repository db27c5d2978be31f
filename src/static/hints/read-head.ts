/** A start tag with its attributes, both in lower case. */
export interface StartTag {
  readonly name: string;
  readonly attributes: ReadonlyMap<string, string>;
}

// The elements of a head. Any other start tag ends it (HTML §13.2.6.4.4).
const HEAD = new Set([
  'html',
  'head',
  'title',
  'base',
  'link',
  'meta',
  'style',
  'script',
  'noscript',
  'template',
]);
// Elements whose content is text, or elements that do not apply to browsers with scripts.
const SKIPPED_CONTENT = new Set(['title', 'style', 'script', 'noscript', 'template']);

const TAG_NAME = /\/?[a-z][^\s/>]*/iy;
const ATTRIBUTE = /[\s/]*([^\s/>=]+)(?:\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s>"']+)))?/y;
const TAG_END = /[\s/]*>/y;

/** Returns the start tags in the head of an HTML document, in one pass over the text. */
export function readHead(html: string): StartTag[] {
  const tags: StartTag[] = [];
  let position = html.indexOf('<');
  while (position >= 0) {
    if (html.startsWith('<!--', position)) position = after(html, '-->', position + 4);
    else if (/[!?]/.test(html[position + 1] ?? '')) position = after(html, '>', position);
    else {
      const tag = readTag(html, position + 1);
      if (tag === undefined) break;
      position = tag.end;
      if (tag.name === '/head') break;
      if (!tag.name.startsWith('/')) {
        if (!HEAD.has(tag.name)) break;
        tags.push(tag);
        if (SKIPPED_CONTENT.has(tag.name)) position = afterEndTag(html, tag.name, position);
      }
    }
    position = position < 0 ? -1 : html.indexOf('<', position);
  }
  return tags;
}

function after(text: string, search: string, from: number): number {
  const index = text.indexOf(search, from);
  return index < 0 ? -1 : index + search.length;
}

/** The text is not converted to lower case for the search, which would lengthen some letters, such as U+0130. */
function afterEndTag(html: string, name: string, from: number): number {
  const endTag = new RegExp(`</${name}`, 'gi');
  endTag.lastIndex = from;
  return endTag.test(html) ? endTag.lastIndex : -1;
}

/** Reads the tag whose name begins at a position; undefined for text and for a tag without an end. */
function readTag(html: string, start: number): (StartTag & { end: number }) | undefined {
  TAG_NAME.lastIndex = start;
  const name = TAG_NAME.exec(html)?.[0].toLowerCase();
  if (name === undefined) return undefined;
  const attributes = new Map<string, string>();
  let position = TAG_NAME.lastIndex;
  for (;;) {
    TAG_END.lastIndex = position;
    if (TAG_END.test(html)) return { name, attributes, end: TAG_END.lastIndex };
    ATTRIBUTE.lastIndex = position;
    const match = ATTRIBUTE.exec(html);
    if (match === null) return undefined;
    const [, key = '', double, single, bare] = match;
    position = ATTRIBUTE.lastIndex;
    const value = double ?? single ?? bare ?? '';
    // The first of several attributes with the same name counts.
    if (!attributes.has(key.toLowerCase())) attributes.set(key.toLowerCase(), decodeReferences(value));
  }
}

const REFERENCES: Readonly<Record<string, string>> = { amp: '&', quot: '"', apos: "'", lt: '<', gt: '>' };

/** Decodes the character references that occur in URLs. */
function decodeReferences(value: string): string {
  return value.replace(
    /&(?:#(\d{1,7})|#x([\da-f]{1,6})|(amp|quot|apos|lt|gt));/gi,
    (all, decimal, hex, name) => {
      if (name !== undefined) return REFERENCES[name.toLowerCase()] ?? all;
      const code = decimal === undefined ? Number.parseInt(hex, 16) : Number(decimal);
      return code > 0 && code <= 0x10_ff_ff ? String.fromCodePoint(code) : all;
    },
  );
}
