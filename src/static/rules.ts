import { validateHeaderValue } from 'node:http';
import { readError } from '../diagnostics/logging.ts';
import { cacheByText } from '../http/negotiation.ts';
import { decodePart, withoutSlash } from '../http/routing.ts';
import { optionError } from '../options/rules.ts';
import { type Dependency, type Files, withOpen } from './files.ts';
import { RULES_SCOPE, type RuleTexts, type StaticSettings } from './options.ts';
import { isHidden, parseRequestPath } from './path.ts';
import type { HeaderList, Metadata } from './representation.ts';
import { warnOfSystem as warn } from './request.ts';
import { isRacilyClean } from './version.ts';

const MAX_BYTES = 1 << 20;
const KINDS = ['redirects', 'headers'] as const;

/** Whether a path is that of a file with rules, which no request may read. Some file systems ignore case. */
export const hasRules = (urlPath: string): boolean => /^\/_(?:redirects|headers)$/i.test(urlPath);

/** What a rule says about a request. A `page` is sent in place of the file. */
type RuleAction =
  | { readonly kind: 'redirect'; readonly status: number; readonly to: string; readonly hasQuery: boolean }
  | { readonly kind: 'page'; readonly status: 200 | 404; readonly urlPath: string };

interface Redirect {
  readonly from: RegExp;
  /** The values that parameters of the query must have; `:name` captures one. */
  readonly query: readonly (readonly [name: string, value: string])[];
  readonly to: string;
  readonly status: number;
  /** Whether the rule also holds for files that exist. */
  readonly isForced: boolean;
}

/** A header of `_headers` with the path above it. */
interface HeaderRule {
  readonly path: RegExp;
  readonly name: string;
  readonly value: string;
}

/** The headers that rules add to a file, or that replace those of `staticFiles`. */
export interface AddedHeaders extends Pick<Metadata, 'cacheControl' | 'vary'> {
  readonly headers: HeaderList;
  readonly type: string | undefined;
  /** Whether the rules are still in force. */
  isCurrent(): boolean;
}

/** The option `rules`: redirects, pages and headers by path, from files of the directory and, behind them, from the option. */
export class Rules {
  readonly #files: Files;
  readonly #settings: StaticSettings;
  readonly #given: RuleTexts;
  readonly #texts = { redirects: '', headers: '' };
  #redirects: readonly Redirect[] = [];
  #forced: readonly Redirect[] = [];
  headersFor!: (urlPath: string) => AddedHeaders;
  /** Undefined before the files are read, and if they may have changed since without a trace. */
  #versions: readonly Dependency[] | undefined;
  #reading: Promise<void> = Promise.resolve();
  #queued: Promise<void> | undefined;

  constructor(given: RuleTexts, files: Files, settings: StaticSettings) {
    this.#given = given;
    this.#files = files;
    this.#settings = settings;
    for (const kind of KINDS) {
      const mistake = this.#use(kind, '');
      if (mistake !== undefined) throw optionError(RULES_SCOPE, `option "rules.${kind}", ${mistake}`);
    }
  }

  /** False if the files with rules have changed, or if they cannot be checked on the event loop. */
  isUnchangedSync(): boolean {
    const known = this.#versions;
    return known !== undefined && this.#files.allowsSync(known) && this.#files.isUnchangedSync(known);
  }

  /** Reads the files with rules if they have changed. Calls during a reading share the next one. */
  refresh(): Promise<void> | undefined {
    if (this.isUnchangedSync()) return undefined;
    this.#queued ??= this.#reading.then(() => {
      this.#queued = undefined;
      return this.#read().catch((error: unknown) => warnOf(readError(error).message));
    });
    this.#reading = this.#queued;
    return this.#queued;
  }

  async #read(): Promise<void> {
    if (this.#versions !== undefined && (await this.#files.isUnchanged(this.#versions))) return;
    const versions: Dependency[] = [];
    let isCertain = true;
    for (const kind of KINDS) {
      const path = this.#files.pathOf(`/_${kind}`);
      const found = await this.#files.stat(path);
      versions.push({ path, version: found?.version });
      let text = '';
      if (found?.kind === 'file') {
        const size = Number(found.version.size);
        if (size > MAX_BYTES) throw new Error(`${path} is larger than ${MAX_BYTES} bytes`);
        const bytes = await withOpen(this.#files, path, found.version, (file) => file.read(size));
        isCertain &&= bytes !== undefined && !isRacilyClean(found.version, Date.now());
        text = bytes?.toString().replace(/^\ufeff/, '') ?? this.#texts[kind];
      }
      if (text === this.#texts[kind]) continue;
      this.#texts[kind] = text;
      const mistake = this.#use(kind, text);
      if (mistake !== undefined) warnOf(`${path}: ${mistake}`);
    }
    this.#versions = isCertain ? versions : undefined;
  }

  /** Uses the text of a file. Returns the mistake in it, with which the rules stay as they were. */
  #use(kind: keyof RuleTexts, text: string): string | undefined {
    try {
      if (kind === 'redirects') {
        this.#redirects = [text, this.#given.redirects].flatMap((each) => eachLine(each, parseRedirect));
        this.#forced = this.#redirects.filter(({ isForced }) => isForced);
      } else {
        const rules = [text, this.#given.headers].flatMap(parseHeaders);
        const isCurrent = (): boolean => this.headersFor === headersFor;
        const headersFor = cacheByText((urlPath) => headersOf(rules, urlPath, isCurrent));
        this.headersFor = headersFor;
      }
      return undefined;
    } catch (error) {
      return readError(error).message;
    }
  }

  /** What the first rule says that matches, of those that hold for a file or of all. */
  actionFor(urlPath: string, url: string, isFile: boolean): RuleAction | undefined {
    for (const rule of isFile ? this.#forced : this.#redirects) {
      if (!rule.from.test(urlPath)) continue;
      const { status, query } = rule;
      const to = targetOf(rule, urlPath, url);
      if (to === undefined || decodePart(to) === urlPath) continue;
      if (status !== 200 && status !== 404)
        return { kind: 'redirect', status, to, hasQuery: to.includes('?') || query.length > 0 };
      // A part of the request may be in the path.
      const page = parseRequestPath(to.replace(/[?#].*/, ''), this.#settings);
      if (page.kind === 'path' && page.path !== urlPath && !isHidden(page.path, this.#settings))
        return { kind: 'page', status, urlPath: page.path };
    }
    return undefined;
  }
}

function headersOf(rules: readonly HeaderRule[], urlPath: string, isCurrent: () => boolean): AddedHeaders {
  const found = new Map<string, string>();
  for (const { name, value } of rules.filter(({ path }) => path.test(urlPath)))
    found.set(name, found.has(name) ? `${found.get(name)}, ${value}` : value);
  // The last one is always sent.
  const own = ['cache-control', 'content-type', 'vary', 'x-content-type-options'];
  const [cacheControl, type, vary] = own.map((name) => found.get(name));
  const headers = [...found].filter(([name]) => !own.includes(name)).flat();
  return { headers, cacheControl, type, vary, isCurrent };
}

const warnOf = (problem: string): void => warn(new Error(`${problem}. The last good rules stay in force`));

/** Where a rule for the path leads; undefined if the query has not its parameters. */
function targetOf({ from, query, to }: Redirect, urlPath: string, url: string): string | undefined {
  const values: Record<string, string | undefined> = { ...from.exec(urlPath)?.groups };
  const given = new URLSearchParams(query.length === 0 ? '' : url.replace(/^[^?]*/, ''));
  for (const [name, value] of query) {
    const text = given.get(name);
    if (text === null || (!value.startsWith(':') && text !== value)) return undefined;
    values[value.slice(1)] = text;
  }
  return to.replace(PLACEHOLDER, (_, name: string) => {
    const value = encodeURIComponent(values[name] ?? '');
    return name === 'splat' ? value.replaceAll('%2F', '/') : value;
  });
}

const PLACEHOLDER = /:([A-Za-z]\w*)/g;
// A certain host, so that no part of a path becomes one.
const TARGET = /^(?:\/(?![/\\])|https?:\/\/[^/?#:@\\]+(?::\d+)?(?:[/?#]|$))/;
const STATUS = /^(200|301|302|303|307|308|404)(!?)$/;
// Headers that describe the body or the connection, and those that would give one visitor's data to others.
const OWN_HEADERS =
  /^(?:accept-ranges|connection|content-(?:encoding|length|location|range)|date|etag|keep-alive|last-modified|location|trailer|transfer-encoding|upgrade|set-cookie|basic-auth)$/;

/** @throws SyntaxError with the number of the line */
function eachLine<T>(text: string, parse: (line: string) => T | undefined): T[] {
  return text.split(/\r\n?|\n/).flatMap((line, index) => {
    try {
      return parse(line.trimEnd()) ?? [];
    } catch (error) {
      throw new SyntaxError(`line ${index + 1}: ${readError(error).message}`);
    }
  });
}

function parseRedirect(line: string): Redirect | undefined {
  const [path, ...words] = (line.replace(/(^|\s)#.*/, '').match(/\S+/g) ?? []) as readonly string[];
  if (path === undefined) return undefined;
  const end = words.findIndex((word) => /^(?:\/|https?:)/.test(word));
  const [to, code = '301', condition] = end < 0 ? [] : words.slice(end);
  if (to === undefined) throw new Error(`"${path}" has no target; write a path, or a URL with https://`);
  if (!TARGET.test(to) || decodePart(to) === undefined)
    throw new Error(
      `the target "${to}" has no certain host; write a path with one slash, or https:// and a host`,
    );
  const [, status, force] = STATUS.exec(code) ?? [];
  if (status === undefined)
    throw new Error(`"${code}" is no status; accepted: 200, 301, 302, 303, 307, 308 and 404, also with !`);
  if (condition !== undefined) throw new Error(`the condition "${condition}" is not supported`);
  if (/^(?:200|404)$/.test(status) && !to.startsWith('/'))
    throw new Error('a page of another server would be a proxy, which is not supported');
  const query = words.slice(0, end).map((word) => {
    const at = word.indexOf('=');
    if (at < 1) throw new Error(`"${word}" is neither a parameter such as id=:id nor a target`);
    return [word.slice(0, at), word.slice(at + 1)] as const;
  });
  const from = compilePath(path);
  const known = `${from.source} ${query.map(([, value]) => `<${value.slice(1)}>`)}`;
  const unknown = [...to.matchAll(PLACEHOLDER)].find(([, name]) => !known.includes(`<${name}>`));
  if (unknown !== undefined) throw new Error(`the target has ${unknown[0]}, which "${path}" does not`);
  const encoded = to.replace(/[^\x21-\x7e]+/g, encodeURIComponent);
  return { from, query, to: encoded, status: Number(status), isForced: force === '!' };
}

/** Compiles a path with `:name` for a segment and one `*` for any number of characters. A slash at its end makes no difference. */
function compilePath(path: string): RegExp {
  if (!path.startsWith('/')) throw new Error(`"${path}" is no path; a path begins with a slash`);
  const [, ...segments] = withoutSlash(path).split('/');
  const sources = segments.map((segment) => {
    if (/^:[A-Za-z]\w*$/.test(segment)) return `/(?<${segment.slice(1)}>[^/]+)`;
    if (/:[A-Za-z]/.test(segment))
      throw new Error(`the placeholder in "${segment}" is not the whole segment`);
    const literal = (decodePart(segment) ?? segment).replace(/[.+?^${}()|[\]\\]/g, '\\$&');
    return `/${literal.replaceAll('*', '(?<splat>.*)')}`;
  });
  const source = sources.join('').replace(/\/\(\?<splat>\.\*\)$/, '(?:/(?<splat>.*))?');
  return new RegExp(`^${source}/?$`, 's');
}

function parseHeaders(text: string): HeaderRule[] {
  let path: RegExp | undefined;
  return eachLine(text, (line) => {
    if (/^\s*(?:#|$)/.test(line)) return undefined;
    if (!/^\s/.test(line)) {
      path = compilePath(line);
      return undefined;
    }
    const [, name, value = ''] = /^\s+([\w!#$%&'*+.^`|~-]+)\s*:\s*(.+)$/.exec(line) ?? [];
    if (name === undefined) throw new Error(`"${line.trim()}" is no header such as X-Frame-Options: DENY`);
    validateHeaderValue(name, value);
    if (path === undefined) throw new Error(`the header "${name}" has no path above it`);
    if (OWN_HEADERS.test(name.toLowerCase())) throw new Error(`a rule cannot set the header ${name}`);
    return { path, name: name.toLowerCase(), value };
  });
}
