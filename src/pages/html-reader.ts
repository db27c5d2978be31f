import { createHash } from 'node:crypto';
import nodeModule from 'node:module';
import { finished } from 'node:stream/promises';
import type { RewritingStream } from 'parse5-html-rewriting-stream';
import { codeOf } from '../http/reply.ts';
import { optionError } from '../options/rules.ts';
import { STATIC_OPTIONS } from '../options/scopes.ts';

const PACKAGE = 'parse5-html-rewriting-stream';

/** Loads the parser when the middleware is created, so that a missing package is noticed there. */
function loadParser(): ParserClass {
  try {
    const loaded: { RewritingStream: ParserClass } = nodeModule.createRequire(import.meta.url)(PACKAGE);
    return loaded.RewritingStream;
  } catch (error) {
    if (codeOf(error) !== 'MODULE_NOT_FOUND') throw error;
    throw optionError(
      STATIC_OPTIONS,
      `the option "pages" needs the package "${PACKAGE}": run npm install ${PACKAGE}`,
    );
  }
}

// Bytes of the longest import that is found.
export const MAX_IMPORT: number = 1000;
const IMPORT = /\b(?:from|import)\s*\(?\s*(?:\/\*[^*]{0,200}\*\/\s*)?(["'`])(\.{0,2}\/[^"'`\n$?#]{1,500})\1/g;

/** The relative URLs that a script imports. Text that only looks like an import costs an entry of the import map. */
export const importsIn = (text: string): string[] => [...text.matchAll(IMPORT)].map(([, , url = '']) => url);

/** The source of a policy for an inline element. The parser has normalised its line ends as browsers do. */
export const hashOf = (text: string): string =>
  `'sha256-${createHash('sha256').update(text).digest('base64')}'`;

/** The class of the package parse5-html-rewriting-stream. */
type ParserClass = typeof RewritingStream;

interface Offsets {
  readonly startOffset: number;
  readonly endOffset: number;
}

interface EndTag {
  readonly tagName: string;
  readonly sourceCodeLocation?:
    | {
        readonly startOffset: number;
        readonly endOffset: number;
        readonly startLine: number;
        readonly attrs?: Readonly<Record<string, Offsets>>;
      }
    | null
    | undefined;
}

interface StartTag extends EndTag {
  readonly attrs: readonly { readonly name: string; readonly value: string }[];
}

/** A script or style that a page loads. */
interface Asset {
  readonly url: string;
  /** The offset behind the name of the tag, where attributes are added. */
  readonly at: number;
  readonly kind: 'script' | 'style';
  readonly isModule: boolean;
  readonly integrity: string | undefined;
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
  /** The value of `<base href>`. */
  readonly base: string | undefined;
  readonly assets: readonly Asset[];
  /** What inline scripts import. */
  readonly imports: readonly string[];
  /** Where the tags of scripts, styles and preloads get a nonce: browsers ignore it in a tag that has two. */
  readonly nonces: readonly Place[];
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

/**
 * Creates a function that parses a page, which takes about 10 ms per megabyte of text.
 *
 * @param configId - the id of the element for the configuration
 */
export function createPageReader(configId: string): (text: string) => Promise<Parsed> {
  const Parser = loadParser();
  return async (text) => {
    const parser = new Parser();
    const reader = new PageReader(configId);
    parser.on('startTag', (tag) => reader.startTag(tag));
    parser.on('endTag', (tag) => reader.endTag(tag));
    parser.on('text', (token) => reader.text(token.text));
    parser.end(text);
    await finished(parser, { readable: false });
    return reader.result(text.length);
  };
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
  readonly #imports: string[] = [];
  #base: string | undefined;
  readonly #nonces: Place[] = [];
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
    if (tagName === 'base' && this.#depth === 0) this.#base ??= attributes.get('href');
    const nonce = sourceCodeLocation.attrs?.['nonce'];
    if (nonce !== undefined) this.#nonces.push({ start: nonce.startOffset, end: nonce.endOffset });
    else if (tagName === 'script' || tagName === 'style' || isPreload)
      this.#nonces.push({ start: at, end: at });
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
    const integrity = attributes.get('integrity');
    this.#assets.push({ url, at, kind, isModule, integrity, hasCrossOrigin: attributes.has('crossorigin') });
  }

  endTag({ tagName, sourceCodeLocation }: EndTag): void {
    if (tagName === 'head') this.#markHead(sourceCodeLocation?.startOffset);
    if (tagName === 'template' || tagName === 'noscript') this.#depth = Math.max(0, this.#depth - 1);
    const inline = this.#inline;
    if (inline === undefined || (tagName !== 'script' && tagName !== 'style')) return;
    this.#inline = undefined;
    const { kind, start, text } = inline;
    const end = sourceCodeLocation?.startOffset ?? start;
    if (kind === 'style') this.#styles.push(hashOf(text));
    else if (kind === 'script') {
      this.#scripts.push(hashOf(text));
      this.#imports.push(...importsIn(text));
    } else if (kind === 'config') this.#config ??= { start, end };
    else if (this.#importMap === undefined) this.#importMap = { start, end, text };
    else this.#scripts.push(hashOf(text));
  }

  text(text: string): void {
    if (this.#inline !== undefined) this.#inline.text += text;
  }

  result(length: number): Parsed {
    return {
      head: this.#head ?? length,
      config: this.#config,
      importMap: this.#importMap,
      base: this.#base,
      assets: this.#assets,
      imports: this.#imports,
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
