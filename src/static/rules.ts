import { type ServerResponse, validateHeaderValue } from 'node:http';
import { addVary } from '../http/reply.ts';
import { decodePart, withoutSlash } from '../http/routing.ts';
import { optionError } from '../options/rules.ts';
import { type Dependency, type Files, withOpen } from './files.ts';
import { RULES_SCOPE, type RuleTexts, type StaticSettings } from './options.ts';
import { hasDotSegment, parseRequestPath } from './path.ts';
import type { HeaderList } from './representation.ts';
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

/** A path of `_headers` with the lines below it. */
interface HeaderRule {
  readonly path: RegExp;
  readonly headers: (readonly [name: string, value: string])[];
}

/** The headers that rules add to a file, or that replace those of `staticFiles`. */
export interface AddedHeaders {
  readonly headers: HeaderList;
  readonly cacheControl: string | undefined;
  readonly type: string | undefined;
  readonly vary: string | undefined;
  /** Whether the rules are still in force. */
  isCurrent(): boolean;
}

/** The option `rules`: redirects, pages and headers by path, from files of the directory and, behind them, from the option. */
export class Rules {
  readonly #files: Files;
  readonly #settings: StaticSettings;
  readonly #given: { readonly redirects: readonly Redirect[]; readonly headers: readonly HeaderRule[] };
  readonly #texts = { redirects: '', headers: '' };
  #redirects: readonly Redirect[] = [];
  #headers: readonly HeaderRule[] = [];
  /** Undefined before the files are read, and if they may have changed since without a trace. */
  #versions: readonly Dependency[] | undefined;
  #isCheckedInTurn = false;
  #freshUntil = 0;
  #work: Promise<void> | undefined;
  /** Whether a rule holds for files that exist. */
  hasForced = false;

  constructor(rules: RuleTexts, files: Files, settings: StaticSettings) {
    this.#files = files;
    this.#settings = settings;
    const given = <T>(kind: keyof RuleTexts, parse: (text: string) => T): T => {
      try {
        return parse(rules[kind]);
      } catch (error) {
        throw optionError(RULES_SCOPE, `option "rules.${kind}", ${messageOf(error)}`);
      }
    };
    this.#given = { redirects: given('redirects', parseRedirects), headers: given('headers', parseHeaders) };
    this.#use('redirects', '');
    this.#use('headers', '');
  }

  /** Checks the files with rules, once for all requests of a turn of the event loop. A request waits for the promise. */
  refresh(): Promise<void> | undefined {
    if (this.#isCheckedInTurn || performance.now() < this.#freshUntil) return this.#work;
    this.#isCheckedInTurn = true;
    setImmediate(() => {
      this.#isCheckedInTurn = false;
    });
    const { revalidateAfter } = this.#settings.cache;
    this.#freshUntil = revalidateAfter === 0 ? 0 : performance.now() + revalidateAfter;
    const versions = this.#versions;
    if (versions !== undefined && this.#files.allowsSync(versions) && this.#files.isUnchangedSync(versions))
      return this.#work;
    const work = (this.#work ?? Promise.resolve()).then(() => this.#read()).catch(warnOfError);
    this.#work = work;
    void work.then(() => {
      if (this.#work === work) this.#work = undefined;
    });
    return work;
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
        text = bytes?.toString() ?? this.#texts[kind];
      }
      if (text === this.#texts[kind]) continue;
      this.#texts[kind] = text;
      try {
        this.#use(kind, text);
      } catch (error) {
        warnOfError(`${path}: ${messageOf(error)}`);
      }
    }
    this.#versions = isCertain ? versions : undefined;
  }

  /** @throws SyntaxError for a mistake; the rules stay as they were */
  #use(kind: keyof RuleTexts, text: string): void {
    const { redirects, headers } = this.#given;
    if (kind === 'headers') this.#headers = [...parseHeaders(text), ...headers];
    else this.#redirects = [...parseRedirects(text), ...redirects];
    this.hasForced = this.#redirects.some(({ isForced }) => isForced);
  }

  /** What the first rule says that matches, of those that hold for a file or of all. */
  actionFor(urlPath: string, url: string, isFile: boolean): RuleAction | undefined {
    for (const redirect of this.#redirects) {
      const action = isFile && !redirect.isForced ? undefined : actionOf(redirect, urlPath, url);
      if (action?.kind !== 'page') {
        if (action !== undefined) return action;
        continue;
      }
      // A part of the request may be in the path.
      const parsed = parseRequestPath(action.urlPath, this.#settings);
      const isServed =
        parsed.kind === 'path' && (this.#settings.dotfiles === 'allow' || !hasDotSegment(parsed.path));
      if (isServed && parsed.path !== urlPath) return { ...action, urlPath: parsed.path };
    }
    return undefined;
  }

  headersFor(urlPath: string): AddedHeaders {
    const rules = this.#headers;
    const found = new Map<string, string>();
    for (const [name, value] of rules.flatMap(({ path, headers }) => (path.test(urlPath) ? headers : [])))
      found.set(name, found.has(name) ? `${found.get(name)}, ${value}` : value);
    const own = ['cache-control', 'content-type', 'vary'];
    const [cacheControl, type, vary] = own.map((name) => found.get(name));
    const headers = [...found].filter(([name]) => !own.includes(name)).flat();
    return { headers, cacheControl, type, vary, isCurrent: () => this.#headers === rules };
  }
}

/** Adds the headers of the requested path to a file that is sent in its place. */
export function addHeaders(res: ServerResponse, headers: readonly string[], vary: string | undefined): void {
  if (vary !== undefined) addVary(res, vary);
  for (let i = 0; i < headers.length; i += 2) {
    const [name = '', value = ''] = headers.slice(i, i + 2);
    if (!res.hasHeader(name)) res.setHeader(name, value);
  }
}

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

const warnOfError = (error: unknown): void =>
  warn(new Error(`${messageOf(error)}. The last good rules stay in force`));

function actionOf(
  { from, query, to: template, status }: Redirect,
  urlPath: string,
  url: string,
): RuleAction | undefined {
  const match = from.exec(urlPath);
  if (match === null) return undefined;
  const values: Record<string, string | undefined> = { ...match.groups };
  const given = new URLSearchParams(query.length === 0 ? '' : url.replace(/^[^?]*/, ''));
  for (const [name, value] of query) {
    const text = given.get(name);
    if (text === null || (!value.startsWith(':') && text !== value)) return undefined;
    values[value.slice(1)] = text;
  }
  const to = template.replace(PLACEHOLDER, (_, name: string) => {
    const value = encodeURIComponent(values[name] ?? '');
    return name === 'splat' ? value.replaceAll('%2F', '/') : value;
  });
  if (decodePart(to) === urlPath) return undefined;
  if (status !== 200 && status !== 404)
    return { kind: 'redirect', status, to, hasQuery: to.includes('?') || query.length > 0 };
  return { kind: 'page', status, urlPath: to.replace(/[?#].*/, '') };
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
      throw new SyntaxError(`line ${index + 1}: ${messageOf(error)}`);
    }
  });
}

const parseRedirects = (text: string): Redirect[] => eachLine(text, parseRedirect);

function parseRedirect(line: string): Redirect | undefined {
  const [path, ...words] = line
    .replace(/(^|\s)#.*/, '')
    .split(/\s+/)
    .filter(Boolean);
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
  const isPage = status === '200' || status === '404';
  if (isPage && !to.startsWith('/'))
    throw new Error('a page of another server would be a proxy, which is not supported');
  const query = words.slice(0, end).map((word): [string, string] => {
    const [, name, value] = /^([^=]+)=(.*)$/.exec(word) ?? [];
    if (name === undefined || value === undefined)
      throw new Error(`"${word}" is neither a parameter such as id=:id nor a target`);
    return [name, value];
  });
  const from = compilePath(path);
  const known = `${from.source} ${query.map(([, value]) => `<${value.replace(/^:/, '')}>`)}`;
  for (const [placeholder, name] of to.matchAll(PLACEHOLDER))
    if (!known.includes(`<${name}>`))
      throw new Error(`the target has ${placeholder}, which "${path}" does not`);
  return {
    from,
    query,
    to: to.replace(/[^\x21-\x7e]+/g, encodeURIComponent),
    status: Number(status),
    isForced: force === '!',
  };
}

/** Compiles a path with `:name` for a segment and one `*` for any number of characters. A slash at its end makes no difference. */
function compilePath(path: string): RegExp {
  if (!path.startsWith('/')) throw new Error(`"${path}" is no path; a path begins with a slash`);
  const segments = withoutSlash(path).split('/').slice(1);
  const sources = segments.map((segment) => {
    const [, name] = /^:([A-Za-z]\w*)$/.exec(segment) ?? [];
    if (name !== undefined) return `/(?<${name}>[^/]+)`;
    if (/:[A-Za-z]/.test(segment))
      throw new Error(`the placeholder in "${segment}" is not the whole segment`);
    const literal = (decodePart(segment) ?? segment).replace(/[.+?^${}()|[\]\\]/g, '\\$&');
    return `/${literal.replaceAll('*', '(?<splat>.*)')}`;
  });
  const source = sources.join('').replace(/\/\(\?<splat>\.\*\)$/, '(?:/(?<splat>.*))?');
  return new RegExp(`^${source}/?$`, 's');
}

function parseHeaders(text: string): HeaderRule[] {
  let rule: HeaderRule | undefined;
  return eachLine(text, (line) => {
    if (/^\s*(?:#|$)/.test(line)) return undefined;
    if (!/^\s/.test(line)) {
      rule = { path: compilePath(line), headers: [] };
      return rule;
    }
    const [, name, value = ''] = /^\s+([\w!#$%&'*+.^`|~-]+)\s*:\s*(.+)$/.exec(line) ?? [];
    if (name === undefined) throw new Error(`"${line.trim()}" is no header such as X-Frame-Options: DENY`);
    validateHeaderValue(name, value);
    if (rule === undefined) throw new Error(`the header "${name}" has no path above it`);
    if (OWN_HEADERS.test(name.toLowerCase())) throw new Error(`a rule cannot set the header ${name}`);
    // That one is always sent.
    if (name.toLowerCase() !== 'x-content-type-options') rule.headers.push([name.toLowerCase(), value]);
    return undefined;
  });
}
