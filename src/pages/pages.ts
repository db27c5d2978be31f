import { createHash, randomBytes } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { posix } from 'node:path';
import type { PagesOptions } from '../../types/static.ts';
import { type Headers, removeLifetime, withoutLifetime, writeReply } from '../http/reply.ts';
import { decodePart } from '../http/routing.ts';
import { assertSync, wrongReturnValue } from '../options/rules.ts';
import { isString } from '../options/values.ts';
import { isImmutable } from '../static/cache-control.ts';
import type { Capabilities, PageAdditions, PageMaker, RenderedPage } from '../static/capabilities.ts';
import { type Dependency, type Files, withOpen } from '../static/files.ts';
import { etagOfBytes } from '../static/hash.ts';
import { mediaTypeOf } from '../static/media-types.ts';
import type { StaticSettings } from '../static/options.ts';
import { encodePath, segmentOf } from '../static/path.ts';
import { addMissing, type HeaderList, type Representation } from '../static/representation.ts';
import { type FileRequest, warnOfSystem as warn } from '../static/request.ts';
import { walkFiles } from '../static/tree.ts';
import { type FileVersion, versionId } from '../static/version.ts';
import { createPageReader, hashOf, importsIn, MAX_IMPORT, type Parsed } from './html-reader.ts';
import { PAGES_SCOPE, type PageSettings, resolvePagesOptions } from './options.ts';
import { extendPolicy, type InlineSources, refusesAttributes } from './policy.ts';

const CONFIG_ID = 'app-config';
const MAX_PAGE_BYTES = 8 << 20;
// Pages whose structure is kept, and pages that are checked at start.
const MAX_PARSED = 1000;
const MAX_HASHES = 4096;
// Modules of one page that an import map lists.
const MAX_MODULES = 1000;
/** The origin of this server in the URLs of its pages. */
const OWN = 'http://own.invalid';
const POLICY_HEADERS = ['Content-Security-Policy', 'Content-Security-Policy-Report-Only'] as const;

/** A script or style, and what it imports by relative URLs. */
interface HashedAsset {
  readonly version: string;
  readonly integrity: string;
  readonly imports: readonly string[];
}

interface Edit {
  readonly start: number;
  readonly end: number;
  readonly text: string;
}

/** Checks the option `pages`. The function creates the pages of a directory or source. */
export function resolvePages(given: PagesOptions): Capabilities['createPages'] {
  const settings = resolvePagesOptions(given);
  return settings && ((files, statics) => new Pages(settings, files, statics));
}

/** The option `pages`: what is added to the HTML files of one middleware. */
class Pages implements PageMaker {
  mount: string | undefined;
  readonly settings: PageSettings;
  readonly #files: Files;
  readonly #static: StaticSettings;
  readonly #parsePage = createPageReader(CONFIG_ID);
  readonly #parsed = new Map<string, { readonly id: string; readonly page: Promise<Parsed> }>();
  readonly #assets = new Map<string, HashedAsset>();
  /** What pages have that their policies refuse, by its text without a line: where it was first found, and on how many pages. */
  readonly #problems = new Map<string, { readonly text: string; pages: number }>();
  #isChecked = false;
  /** Stands for the nonce in the text of a page. */
  readonly placeholder: string = randomBytes(18).toString('hex');

  constructor(settings: PageSettings, files: Files, statics: StaticSettings) {
    this.settings = settings;
    this.#files = files;
    this.#static = statics;
    if (settings.csp !== undefined || settings.integrity)
      void this.#checkAll()
        .catch(() => undefined)
        .then(() => this.#reportAll());
  }

  accepts(path: string): boolean {
    return mediaTypeOf(path).startsWith('text/html');
  }

  async render(filePath: string, bytes: Buffer, urlPath: string = filePath): Promise<RenderedPage> {
    const text = bytes.toString('utf8');
    const config = this.#configText();
    const parsed = await this.#parse(filePath, text, bytes);
    const { csp, integrity } = this.settings;
    const edits: Edit[] = [];
    const dependencies: Dependency[] = [];
    const scripts = [...parsed.scripts];
    let added = '';
    if (config !== undefined && parsed.config !== undefined) edits.push({ ...parsed.config, text: config });
    else if (config !== undefined)
      added = `<script type="application/json" id="${CONFIG_ID}">${config}</script>`;
    const external: string[] = [];
    let modules: Readonly<Record<string, string>> = {};
    if (integrity) {
      external.push(...(await this.#addIntegrity(urlPath, parsed, edits, dependencies)));
      modules = await this.#modulesOf(urlPath, parsed, dependencies);
      external.push(...Object.values(modules).map((each) => `'${each}'`));
    }
    const nonce = !csp?.nonce ? '' : ` nonce="${this.placeholder}"`;
    const map = importMapOf(parsed, modules);
    if (map !== undefined) {
      scripts.push(hashOf(map));
      if (parsed.importMap === undefined) added += `<script type="importmap"${nonce}>${map}</script>`;
      // The text of the parser has other line ends than the file.
      else if (map !== parsed.importMap.text) edits.push({ ...parsed.importMap, text: map });
    }
    if (added !== '') edits.push({ start: parsed.head, end: parsed.head, text: added });
    if (nonce !== '') for (const place of parsed.nonces) edits.push({ ...place, text: nonce });
    const body = Buffer.from(apply(text, edits));
    const sources = { scripts, external: [...new Set(external)], styles: parsed.styles };
    const additions = new Additions(this, filePath, config, sources);
    const headers = this.headersFor(sources);
    const etag = await etagOfBytes(Buffer.concat([body, Buffer.from(headers.join('\n'))]));
    return { body, etag, headers, dependencies, additions };
  }

  /** The headers of a response for which no other code has set a policy. */
  headersFor(sources: InlineSources): string[] {
    const { csp, integrity } = this.settings;
    const headers: string[] = [];
    if (csp !== undefined)
      headers.push(POLICY_HEADERS[csp.reportOnly ? 1 : 0], extendPolicy(csp.policy, sources));
    if (csp?.reportTo !== undefined) headers.push('Reporting-Endpoints', `csp="${csp.reportTo}"`);
    if (integrity) headers.push('Integrity-Policy', 'blocked-destinations=(script)');
    return headers;
  }

  /** Returns the JSON of the option `config`, which no text of it can end. */
  #configText(): string | undefined {
    const { config } = this.settings;
    if (config === undefined) return undefined;
    const text = JSON.stringify(assertSync(config(), PAGES_SCOPE, 'config'));
    if (typeof text !== 'string') throw wrongReturnValue(PAGES_SCOPE, 'config', undefined, 'a JSON value');
    return escapeJson(text);
  }

  /** Whether the function `config` still returns the value of a page. Its error is reported when the page is rendered. */
  isCurrent(config: string | undefined): boolean {
    try {
      return this.settings.config === undefined || this.#configText() === config;
    } catch {
      return false;
    }
  }

  async #parse(filePath: string, text: string, bytes: Buffer): Promise<Parsed> {
    const id = await etagOfBytes(bytes);
    const known = this.#parsed.get(filePath);
    if (known?.id === id) return known.page;
    if (bytes.length > MAX_PAGE_BYTES) throw unfit(filePath, `larger than ${MAX_PAGE_BYTES} bytes`);
    if (/^(?:\xff\xfe|\xfe\xff)/.test(bytes.toString('latin1', 0, 2)))
      throw unfit(filePath, 'encoded as UTF-16');
    if (this.#parsed.size >= MAX_PARSED) this.#parsed.clear();
    const page = this.#parsePage(text);
    this.#parsed.set(filePath, { id, page });
    const parsed = await page;
    this.#addProblems(filePath, parsed);
    return parsed;
  }

  /** Counts the problems of a page. Each is reported once: all pages of a site have the same ones. */
  #addProblems(filePath: string, parsed: Parsed): void {
    const found = new Map<string, string>();
    for (const problem of this.#problemsOf(filePath, parsed)) {
      const kind = problem.replace(/ in line \d+/, '');
      if (!found.has(kind)) found.set(kind, problem);
    }
    for (const [kind, problem] of found) {
      const known = this.#problems.get(kind);
      if (known !== undefined) known.pages++;
      else {
        const text = `${filePath}: ${problem}`;
        if (this.#problems.size >= MAX_PARSED) this.#problems.clear();
        this.#problems.set(kind, { text, pages: 1 });
        if (this.#isChecked) warn(new Error(text));
      }
    }
  }

  /** Says what the policies of a page refuse and no header can allow. */
  *#problemsOf(filePath: string, parsed: Parsed): Generator<string> {
    const { attributes, assets } = parsed;
    const { csp, integrity } = this.settings;
    const policy = csp?.policy ?? '';
    for (const { kind, name, line } of attributes) {
      if (refusesAttributes(policy, kind))
        yield `the Content-Security-Policy of ${this.#files.pathOf('/')} refuses the attribute ${name} in line ${line}; move its code to a ${kind === 'script' ? 'script' : 'style sheet'}`;
    }
    if (!integrity) return;
    const base = this.#baseOf(filePath, parsed);
    for (const { url, kind, integrity: given } of assets) {
      if (kind === 'script' && given === undefined && this.#pathOf(url, base) === undefined)
        yield refusal(url, 'of another origin');
    }
    const { integrity: known } = readImportMap(parsed.importMap) ?? {};
    for (const url of importsOf(parsed.importMap)) {
      if (!url.endsWith('/') && this.#pathOf(url, base) === undefined && !(url in Object(known)))
        yield refusal(url, 'of another origin');
    }
  }

  /** Finds the problems of all pages before a client meets them. */
  async #checkAll(): Promise<void> {
    let checked = 0;
    for await (const { path: filePath } of walkFiles(this.#files, this.#static)) {
      if (!this.accepts(filePath)) continue;
      if (++checked > MAX_PARSED) return;
      const bytes = await this.#read(filePath).catch(() => undefined);
      if (bytes !== undefined) await this.#parse(filePath, bytes.toString('utf8'), bytes).catch(warn);
    }
  }

  #reportAll(): void {
    this.#isChecked = true;
    for (const { text, pages } of this.#problems.values())
      warn(new Error(pages === 1 ? text : `${text} (${pages} pages have this problem)`));
  }

  async #read(filePath: string): Promise<Buffer | undefined> {
    const path = this.#files.pathOf(filePath);
    const found = await this.#files.stat(path);
    if (found?.kind !== 'file' || found.version.size > MAX_PAGE_BYTES) return undefined;
    const size = Number(found.version.size);
    return withOpen(this.#files, path, found.version, (file) => file.read(size));
  }

  /** Adds `integrity` to the tags of own scripts and styles. Returns the hashes of the scripts as sources of a policy. */
  async #addIntegrity(
    filePath: string,
    parsed: Parsed,
    edits: Edit[],
    dependencies: Dependency[],
  ): Promise<string[]> {
    const sources: string[] = [];
    const base = this.#baseOf(filePath, parsed);
    for (const { url, at, kind, integrity: given, hasCrossOrigin } of parsed.assets) {
      if (given !== undefined) {
        if (kind === 'script') sources.push(...(given.match(HASH) ?? []).map((hash) => `'${hash}'`));
        continue;
      }
      const path = this.#pathOf(url, base);
      if (path === undefined) continue;
      const integrity = (await this.#assetAt(path, dependencies))?.integrity;
      if (integrity === undefined) {
        if (kind === 'script') warn(new Error(`${filePath}: ${refusal(url, 'that is not among the files')}`));
        continue;
      }
      if (kind === 'script') sources.push(`'${integrity}'`);
      // Chromium refuses an own script without CORS under Integrity-Policy. A preload must have the mode of its use.
      const crossOrigin = hasCrossOrigin ? '' : ' crossorigin';
      edits.push({ start: at, end: at, text: ` integrity="${integrity}"${crossOrigin}` });
    }
    return sources;
  }

  /**
   * The modules beside those that a page names, and those that they import, by URL: a browser finds the hash of an imported
   * module in the import map only.
   */
  async #modulesOf(
    filePath: string,
    parsed: Parsed,
    dependencies: Dependency[],
  ): Promise<Readonly<Record<string, string>>> {
    const modules: Record<string, string> = {};
    const base = this.#baseOf(filePath, parsed);
    const named = parsed.assets.filter(({ isModule }) => isModule).map(({ url }) => url);
    const urls = new Set<string>();
    const folders = new Set([...named, ...importsOf(parsed.importMap), ...parsed.imports].map(folderOf));
    for (const folder of folders) {
      const below = this.#pathOf(`${folder}x`, base)?.slice(0, -1);
      if (below === undefined) continue;
      const at = this.#files.pathOf(below);
      dependencies.push({ path: at, version: (await this.#files.stat(at))?.version });
      for (const { name } of (await this.#files.names(below)) ?? [])
        if (isModuleName(name)) urls.add(folder + encodeName(name));
    }
    // Also visits what is added meanwhile.
    for (const url of urls) {
      const path = this.#pathOf(url, base);
      const asset = path === undefined ? undefined : await this.#assetAt(path, dependencies);
      if (asset === undefined) continue;
      modules[url] = asset.integrity;
      for (const imported of asset.imports) {
        const from = imported.startsWith('/') ? '' : folderOf(url);
        urls.add(folderOf(posix.join(from, imported)) + segmentOf(imported));
      }
      if (urls.size > MAX_MODULES)
        throw unfit(
          filePath,
          `beside more than ${MAX_MODULES} modules, which the option "pages.integrity" would list`,
        );
    }
    return modules;
  }

  /** What the URLs in a page are relative to. */
  #baseOf(filePath: string, { base }: Parsed): URL {
    const page = new URL(`${OWN}${this.mount ?? ''}${encodePath(filePath)}`);
    return base !== undefined && URL.canParse(base, page) ? new URL(base, page) : page;
  }

  /** The path below the root of a URL in a page; undefined for a URL of another origin. */
  #pathOf(url: string, base: URL): string | undefined {
    if (!URL.canParse(url, base)) return undefined;
    const { origin, pathname } = new URL(url, base);
    if (origin !== OWN) return undefined;
    const mount = this.mount ?? '';
    // The first request names the mount, and routers ignore its case.
    const isBelow = mount !== '' && pathname.toLowerCase().startsWith(`${mount.toLowerCase()}/`);
    const below = isBelow ? pathname.slice(mount.length) : pathname;
    const decoded = decodePart(below);
    return decoded && posix.normalize(decoded);
  }

  /** @param assetPath - the path below the root of a script or style */
  async #assetAt(assetPath: string, dependencies: Dependency[]): Promise<HashedAsset | undefined> {
    const path = this.#files.pathOf(assetPath);
    const found = await this.#files.stat(path);
    const isFixed = found !== undefined && isImmutable(this.#static.cacheControl(assetPath));
    if (!isFixed) dependencies.push({ path, version: found?.version });
    if (found?.kind !== 'file') return undefined;
    const version = versionId(found.version);
    const known = this.#assets.get(path);
    if (known?.version === version) return known;
    const asset = await this.#readAsset(path, found.version);
    if (asset === undefined) return undefined;
    if (this.#assets.size >= MAX_HASHES) this.#assets.clear();
    this.#assets.set(path, asset);
    return asset;
  }

  #readAsset(path: string, version: FileVersion): Promise<HashedAsset | undefined> {
    return withOpen(this.#files, path, version, async (file) => {
      const isModule = isModuleName(path);
      const imports = new Set<string>();
      const hash = createHash('sha384');
      let end = '';
      for await (const chunk of file.chunks()) {
        hash.update(chunk);
        if (!isModule) continue;
        const text = end + Buffer.from(chunk.buffer, chunk.byteOffset, chunk.length).toString('latin1');
        for (const name of importsIn(text)) imports.add(Buffer.from(name, 'latin1').toString('utf8'));
        end = text.slice(-MAX_IMPORT);
      }
      const integrity = `sha384-${hash.digest('base64')}`;
      return { version: versionId(version), integrity, imports: [...imports] };
    });
  }
}

class Additions implements PageAdditions {
  readonly #pages: Pages;
  readonly #filePath: string;
  readonly #config: string | undefined;
  readonly #sources: InlineSources;

  constructor(pages: Pages, filePath: string, config: string | undefined, sources: InlineSources) {
    this.#pages = pages;
    this.#filePath = filePath;
    this.#config = config;
    this.#sources = sources;
  }

  get hasNonce(): boolean {
    return Boolean(this.#pages.settings.csp?.nonce);
  }

  isCurrent(): boolean {
    return this.#pages.isCurrent(this.#config);
  }

  extendPolicies(res: ServerResponse, sources: InlineSources = this.#sources): void {
    if (this.#pages.settings.csp === undefined) return;
    for (const name of POLICY_HEADERS) {
      const value = res.getHeader(name);
      if (value !== undefined)
        res.setHeader(
          name,
          [value].flat().map((each) => extendPolicy(String(each), sources)),
        );
    }
  }

  headersWith(own: HeaderList, added: HeaderList = [], sources: InlineSources = this.#sources): HeaderList {
    const headers: string[] = [];
    for (let i = 0; i < added.length; i += 2) {
      const [name = '', value = ''] = added.slice(i, i + 2);
      if (name !== name.toLowerCase()) continue;
      const isPolicy = POLICY_HEADERS.some((each) => each.toLowerCase() === name);
      headers.push(name, isPolicy ? extendPolicy(value, sources) : value);
    }
    return addMissing(headers, own);
  }

  sendWithNonce({ req, res, status }: FileRequest, { body, metadata }: Representation): void {
    const nonce = this.#nonceFor(req, res);
    removeLifetime(res);
    const source = [`'nonce-${nonce}'`];
    const sources = { scripts: source, external: [], styles: source };
    this.extendPolicies(res, sources);
    const headers: Headers = { 'Cache-Control': 'no-store' };
    const added = withoutLifetime(metadata.added ?? []);
    const all = this.headersWith(this.#pages.headersFor(sources), added, sources);
    const own = ['Content-Type', metadata.type, ...all];
    for (let i = 0; i < own.length; i += 2) {
      if (!res.hasHeader(own[i] as string)) headers[own[i] as string] = own[i + 1] as string;
    }
    headers['X-Content-Type-Options'] = 'nosniff';
    const text = (body ?? Buffer.alloc(0)).toString('utf8').replaceAll(this.#pages.placeholder, nonce);
    writeReply(req, res, { status, headers, body: Buffer.from(text) });
  }

  #nonceFor(req: IncomingMessage, res: ServerResponse): string {
    const given = this.#pages.settings.csp?.nonce;
    const scope = { ...PAGES_SCOPE, within: 'pages.csp' };
    const nonce: unknown =
      typeof given === 'function'
        ? assertSync(given(req, res), scope, 'nonce')
        : randomBytes(18).toString('base64');
    if (typeof nonce === 'string' && /^[\w+/-]+={0,2}$/.test(nonce)) return nonce;
    throw wrongReturnValue(scope, 'nonce', nonce, `a text of base64, for ${this.#filePath}`);
  }
}

const unfit = (filePath: string, reason: string): Error =>
  new Error(`staticFiles: the option "pages" cannot change ${filePath}, which is ${reason}`);

const refusal = (url: string, what: string): string =>
  `Integrity-Policy refuses the script ${url} ${what}; add its integrity to the page`;

/** A hash in an attribute `integrity`, which is also a source of a policy. */
const HASH = /\bsha(?:256|384|512)-[\w+/-]+={0,2}/g;

const isModuleName = (name: string): boolean => mediaTypeOf(name).startsWith('text/javascript');

/** A name in the spelling that browsers give to it in a URL. */
const encodeName = (name: string): string =>
  new URL(`./${name.replace(/[%?#]/g, encodeURIComponent)}`, OWN).pathname.slice(1);

/** The folder of a URL. An import map takes no URL that begins with a name. */
function folderOf(url: string): string {
  const path = url.replace(/[?#].*/, '');
  const folder = path.slice(0, path.lastIndexOf('/') + 1);
  return /^(?:\.{0,2}\/|[a-z][a-z\d+.-]*:)/i.test(folder) ? folder : `./${folder}`;
}

/** Escapes what would end the element, and what is no text in ECMAScript before 2019. */
const escapeJson = (text: string): string =>
  text.replace(/[<\u2028\u2029]/g, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`);

/** What an import map of a page has; undefined without one, and for one that the browser refuses. */
function readImportMap(importMap: Parsed['importMap']): ImportMap | undefined {
  try {
    return importMap && Object(JSON.parse(importMap.text));
  } catch {
    return undefined;
  }
}

interface ImportMap {
  readonly imports?: unknown;
  readonly scopes?: unknown;
  readonly integrity?: object;
}

/** The URLs that an import map names. */
function importsOf(importMap: Parsed['importMap']): string[] {
  const { imports, scopes } = readImportMap(importMap) ?? {};
  const lists: unknown[] = [imports, ...Object.values(Object(scopes))];
  return lists.flatMap((list) => Object.values(Object(list))).filter(isString);
}

/** The import map of a page with the hashes of modules; undefined if it has none. */
function importMapOf({ importMap }: Parsed, modules: Readonly<Record<string, string>>): string | undefined {
  const hasModules = Object.keys(modules).length > 0;
  if (!hasModules || importMap === undefined) {
    return hasModules ? escapeJson(JSON.stringify({ integrity: modules })) : importMap?.text;
  }
  const given = readImportMap(importMap);
  return given === undefined
    ? importMap.text
    : escapeJson(JSON.stringify({ ...given, integrity: { ...modules, ...given.integrity } }));
}

function apply(text: string, edits: readonly Edit[]): string {
  let result = '';
  let end = 0;
  for (const edit of [...edits].sort((a, b) => a.start - b.start)) {
    result += text.slice(end, edit.start) + edit.text;
    end = edit.end;
  }
  return result + text.slice(end);
}
