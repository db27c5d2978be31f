import { createHash } from 'node:crypto';
import { finished } from 'node:stream/promises';
import type { RewritingStream } from 'parse5-html-rewriting-stream';

/** The class of the package parse5-html-rewriting-stream. */
export type ParserClass = typeof RewritingStream;

interface EndTag {
  readonly tagName: string;
  readonly sourceCodeLocation?:
    | { readonly startOffset: number; readonly endOffset: number; readonly startLine: number }
    | null
    | undefined;
}

interface StartTag extends EndTag {
  readonly attrs: readonly { readonly name: string; readonly value: string }[];
}

/** A script or style that a page loads. */
interface Asset {
  readonly url: string;
  /** The offset behind the name of the tag, where attributes are added: the first of two equal names counts. */
  readonly at: number;
  readonly kind: 'script' | 'style';
  readonly isModule: boolean;
  readonly hasIntegrity: boolean;
  readonly hasCrossOrigin: boolean;
}

interface Place {
  readonly start: number;
  readonly end: number;
}

/** What the option `pages` needs to know of an HTML file. Offsets are those of its text. */
export interface Parsed {
  /** Where elements are added: before all scripts and preloads. */
  readonly head: number;
  /** The content of the element for the configuration, if the page has it. */
  readonly config: Place | undefined;
  readonly importMap: (Place & { readonly text: string }) | undefined;
  readonly assets: readonly Asset[];
  /** Offsets in the tags of scripts, styles and preloads where a nonce is added. */
  readonly nonces: readonly number[];
  /** The hashes of the inline scripts, except an import map, and of the styles. */
  readonly scripts: readonly string[];
  readonly styles: readonly string[];
  /** Attributes with code, which a policy refuses. */
  readonly attributes: readonly {
    readonly kind: 'script' | 'style';
    readonly name: string;
    readonly line: number;
  }[];
}

/** Parses a page, which takes about 10 ms per megabyte of text. */
export async function parsePage(Parser: ParserClass, text: string, configId: string): Promise<Parsed> {
  const parser = new Parser();
  const reader = new PageReader(configId);
  parser.on('startTag', (tag) => reader.startTag(tag));
  parser.on('endTag', (tag) => reader.endTag(tag));
  parser.on('text', (token) => reader.text(token.text));
  parser.end(text);
  await finished(parser, { readable: false });
  return reader.result(text.length);
}

// https://html.spec.whatwg.org/multipage/scripting.html: other types are data, to which no policy applies.
const CODE =
  /^(?:|module|importmap|speculationrules|(?:application|text)\/(?:x-)?(?:java|ecma)script|text\/(?:javascript1\.[0-5]|jscript|livescript))$/i;
const PRELOADS = /(?:^|\s)(?:stylesheet|preload|modulepreload)(?:\s|$)/i;

type Inline = {
  readonly kind: 'script' | 'style' | 'import-map' | 'config';
  readonly start: number;
  text: string;
};

class PageReader {
  readonly #configId: string;
  #head: number | undefined;
  #config: Place | undefined;
  #importMap: (Place & { text: string }) | undefined;
  readonly #assets: Asset[] = [];
  readonly #nonces: number[] = [];
  readonly #scripts: string[] = [];
  readonly #styles: string[] = [];
  readonly #attributes: { kind: 'script' | 'style'; name: string; line: number }[] = [];
  /** The element whose content is collected. */
  #inline: Inline | undefined;
  /** Elements in `template` and `noscript` are no place for additions. */
  #depth = 0;

  constructor(configId: string) {
    this.#configId = configId;
  }

  startTag({ tagName, attrs, sourceCodeLocation }: StartTag): void {
    if (sourceCodeLocation == null) return;
    const { startOffset, endOffset, startLine } = sourceCodeLocation;
    const attributes = new Map(attrs.map(({ name, value }) => [name, value]));
    const at = startOffset + 1 + tagName.length;
    if (tagName === 'template' || tagName === 'noscript') this.#depth++;
    const isPreload = tagName === 'link' && PRELOADS.test(attributes.get('rel') ?? '');
    if (tagName === 'script' || isPreload || tagName === 'body') this.#markHead(startOffset);
    if (tagName === 'script' || tagName === 'style' || isPreload || attributes.has('nonce'))
      this.#nonces.push(at);
    if (tagName === 'script') this.#startScript(attributes, at, endOffset);
    if (tagName === 'style') this.#inline = { kind: 'style', start: endOffset, text: '' };
    if (isPreload) this.#addPreload(attributes, at);
    for (const { name, value } of attrs) {
      const isCode =
        /^on./.test(name) ||
        (/^(?:href|src|action|formaction)$/.test(name) && /^\s*javascript:/i.test(value));
      if (isCode || name === 'style')
        this.#attributes.push({ kind: isCode ? 'script' : 'style', name, line: startLine });
    }
  }

  #startScript(attributes: ReadonlyMap<string, string>, at: number, end: number): void {
    const type = (attributes.get('type') ?? '').trim();
    const url = attributes.get('src') ?? attributes.get('href') ?? attributes.get('xlink:href');
    const isModule = type.toLowerCase() === 'module';
    if (url !== undefined) {
      if (CODE.test(type)) this.#addAsset('script', url, attributes, at, isModule);
      return;
    }
    if (attributes.get('id') === this.#configId) this.#inline = { kind: 'config', start: end, text: '' };
    else if (type.toLowerCase() === 'importmap') this.#inline = { kind: 'import-map', start: end, text: '' };
    else if (CODE.test(type)) this.#inline = { kind: 'script', start: end, text: '' };
  }

  #addPreload(attributes: ReadonlyMap<string, string>, at: number): void {
    const url = attributes.get('href');
    const rel = (attributes.get('rel') ?? '').toLowerCase().split(/\s+/);
    const as = (attributes.get('as') ?? '').toLowerCase();
    if (url === undefined) return;
    if (rel.includes('stylesheet')) this.#addAsset('style', url, attributes, at, false);
    else if (rel.includes('modulepreload')) this.#addAsset('script', url, attributes, at, true);
    else if (as === 'script' || as === 'style') this.#addAsset(as, url, attributes, at, false);
  }

  #addAsset(
    kind: Asset['kind'],
    url: string,
    attributes: ReadonlyMap<string, string>,
    at: number,
    isModule: boolean,
  ): void {
    const hasIntegrity = attributes.has('integrity');
    this.#assets.push({
      url,
      at,
      kind,
      isModule,
      hasIntegrity,
      hasCrossOrigin: attributes.has('crossorigin'),
    });
  }

  endTag({ tagName, sourceCodeLocation }: EndTag): void {
    if (tagName === 'head') this.#markHead(sourceCodeLocation?.startOffset);
    if (tagName === 'template' || tagName === 'noscript') this.#depth = Math.max(0, this.#depth - 1);
    const inline = this.#inline;
    if (inline === undefined || (tagName !== 'script' && tagName !== 'style')) return;
    this.#inline = undefined;
    const { kind, start, text } = inline;
    const end = sourceCodeLocation?.startOffset ?? start;
    if (kind === 'style') this.#styles.push(sourceOf(text));
    else if (kind === 'script') this.#scripts.push(sourceOf(text));
    else if (kind === 'config') this.#config ??= { start, end };
    else if (this.#importMap === undefined) this.#importMap = { start, end, text };
    else this.#scripts.push(sourceOf(text));
  }

  text(text: string): void {
    if (this.#inline !== undefined) this.#inline.text += text;
  }

  result(length: number): Parsed {
    return {
      head: this.#head ?? length,
      config: this.#config,
      importMap: this.#importMap,
      assets: this.#assets,
      nonces: this.#nonces,
      scripts: [...new Set(this.#scripts)],
      styles: [...new Set(this.#styles)],
      attributes: this.#attributes,
    };
  }

  #markHead(offset: number | undefined): void {
    if (this.#depth === 0) this.#head ??= offset;
  }
}

/** The source of a policy for an inline element. The parser has normalised its line ends as browsers do. */
const sourceOf = (text: string): string => `'sha256-${createHash('sha256').update(text).digest('base64')}'`;
