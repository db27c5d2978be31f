import { createHash } from 'node:crypto';
import { setImmediate } from 'node:timers/promises';
import { checkPreconditions } from '../http/conditions.ts';
import { createNegotiator } from '../http/negotiation.ts';
import { addVary, type Headers, writeReply } from '../http/reply.ts';
import type { Dependency, Files, FolderName } from './files.ts';
import { etagOfBytes } from './hash.ts';
import { mediaTypeOf } from './media-types.ts';
import type { StaticSettings } from './options.ts';
import { requestedPath } from './path.ts';
import { isFinished, type RequestTriple, redirectToSlash, sendStatus } from './request.ts';
import { presetStatus } from './respond.ts';
import { isReachable, statNames, type TreeEntry } from './tree.ts';
import { isRacilyClean } from './version.ts';

// A longer list is cut: each entry costs a stat.
const MAX_ENTRIES = 1000;
// Folders whose names are kept.
const MAX_FOLDERS = 64;
// Milliseconds for which names are kept: a folder above may have been moved out of the root.
const KNOWN_FOR = 60_000;
// Names that are compared without a pause, which takes about a millisecond.
const SLICE = 1000;
const TYPES = ['text/html', 'application/json'];
const negotiate = createNegotiator(TYPES);
const order = new Intl.Collator('en', { numeric: true });

const STYLE =
  ':root{color-scheme:light dark;--line:#d5d8dc;--soft:#5b6570;--link:#0b57a4}' +
  '@media(prefers-color-scheme:dark){:root{--line:#3a4048;--soft:#a4adb8;--link:#8ab8f0}}' +
  'body{font:1rem/1.5 system-ui,sans-serif;max-width:60rem;margin:0 auto;padding:1rem;background:Canvas;color:CanvasText}' +
  'h1{font-size:1.25rem;overflow-wrap:anywhere}ul{list-style:none;margin:0;padding:0}' +
  'li{display:flex;flex-wrap:wrap;gap:0 1rem;border-top:1px solid var(--line)}' +
  'a{color:var(--link)}li a{flex:1 1 14rem;padding:.6rem 0;overflow-wrap:anywhere}h1 a,p a{padding:.4rem .2rem}' +
  'span,time,p,i{color:var(--soft);font-size:.875rem;padding:.7rem 0;font-variant-numeric:tabular-nums}' +
  'i{font-style:normal;min-width:9rem}span{min-width:5rem;text-align:right}@media(max-width:30rem){i,span,time{padding-top:0}i{min-width:0}span{text-align:left}:empty{display:none}li a{flex-basis:100%}}';
const POLICY = `default-src 'none'; style-src 'sha256-${createHash('sha256').update(STYLE).digest('base64')}'; base-uri 'none'; form-action 'none'; frame-ancestors 'self'`;

/** The first names of a folder in the order of its list. */
interface FirstNames {
  readonly names: readonly FolderName[];
  /** Whether the folder has more names than the list. */
  readonly isCut: boolean;
}

type Sortable = Pick<FolderName, 'name' | 'kind'>;

interface Folder {
  readonly entries: readonly TreeEntry[];
  readonly isCut: boolean;
}

/** The option `listing`: pages with the names in folders that have no index file. */
export class Listings {
  readonly #files: Files;
  readonly #settings: StaticSettings;
  readonly #hasEmptyFolders: boolean;
  /** Folders that wait to be read. Requests share a reading that starts after the last of them arrived. */
  readonly #queued = new Map<string, Promise<Folder | undefined>>();
  /** The names in folders that have not changed, so that a large one is not read for each request. */
  readonly #known = new Map<string, FirstNames & { readonly at: Dependency; readonly until: number }>();
  #work: Promise<unknown> = Promise.resolve();

  /** @param hasEmptyFolders - false for a source, where a folder is a part of the names of its files */
  constructor(files: Files, settings: StaticSettings, hasEmptyFolders: boolean) {
    this.#files = files;
    this.#settings = settings;
    this.#hasEmptyFolders = hasEmptyFolders;
  }

  /** Sends the list of a folder, given as its URL path with a slash at the end; false if there is no such folder. */
  async send(request: RequestTriple, urlPath: string): Promise<boolean> {
    const { req, res } = request;
    const folder = await this.#read(urlPath);
    if (folder === undefined) return false;
    if (isFinished(res)) return true;
    if (redirectToSlash(request)) return true;
    const asked = requestedPath(req);
    // Middleware may have given the folder another name than the client has for it.
    const shown = asked.endsWith(urlPath) ? urlPath : asked;
    const isJson = negotiate(req.headers.accept).type === 'application/json';
    const sort = sortOf(req.url ?? '');
    const sorted = { ...folder, entries: sortBy(sort, folder.entries) };
    const body = Buffer.from(isJson ? asJson(shown, sorted) : asPage(shown, sorted, sort));
    const tag = await etagOfBytes(body);
    if (isFinished(res)) return true;
    addVary(res, 'Accept');
    const headers: Headers = {
      'Content-Type': `${isJson ? 'application/json' : 'text/html'}; charset=utf-8`,
      'Cache-Control': String(res.getHeader('Cache-Control') ?? 'no-cache'),
      ETag: tag,
      'X-Content-Type-Options': 'nosniff',
    };
    if (!isJson) headers['Content-Security-Policy'] = POLICY;
    const status = presetStatus(request, res.statusCode);
    const result = status === 200 ? checkPreconditions(req.headers, { tag, modified: undefined }) : 'proceed';
    if (result === 'proceed') writeReply(req, res, { status, headers, body });
    else if (result === 'failed') sendStatus(request, 412);
    else {
      delete headers['Content-Type'];
      writeReply(req, res, { status: 304, headers, body: undefined });
    }
    return true;
  }

  /** Folders are read one after the other, so that requests for large ones leave the thread pool to others. */
  #read(path: string): Promise<Folder | undefined> {
    const queued = this.#queued.get(path);
    if (queued !== undefined) return queued;
    const reading = this.#work.then(async () => {
      this.#queued.delete(path);
      const first = await this.#namesIn(path);
      const entries = first && (await statNames(this.#files, path, first.names));
      if (entries === undefined || (entries.length === 0 && !this.#hasEmptyFolders)) return undefined;
      return { entries: entries.sort(byKindAndName), isCut: first?.isCut === true };
    });
    this.#queued.set(path, reading);
    this.#work = reading.catch(() => undefined);
    return reading;
  }

  async #namesIn(folder: string): Promise<FirstNames | undefined> {
    const now = performance.now();
    const known = this.#known.get(folder);
    if (known !== undefined && known.until > now && (await this.#files.isUnchanged([known.at]))) return known;
    this.#known.delete(folder);
    const path = this.#files.pathOf(folder.slice(0, -1) || '/');
    const at = { path, version: (await this.#files.stat(path))?.version };
    const isRacily = at.version !== undefined && isRacilyClean(at.version, Date.now());
    const names = await this.#files.names(folder);
    if (names === undefined) return undefined;
    const first = await this.#firstOf(folder, names);
    // What a link leads to may change without the folder, and a folder of a source has no version.
    const mayChange = isRacily || !this.#hasEmptyFolders || names.some(({ isLink }) => isLink);
    if (mayChange || !(await this.#files.isUnchanged([at]))) return first;
    if (this.#known.size >= MAX_FOLDERS) this.#known.clear();
    this.#known.set(folder, { ...first, at, until: now + KNOWN_FOR });
    return first;
  }

  /** Finds the first names without sorting all of them. */
  async #firstOf(folder: string, names: readonly FolderName[]): Promise<FirstNames> {
    let first: FolderName[] = [];
    let total = 0;
    for (let start = 0; start < names.length; start += SLICE) {
      if (start > 0) await setImmediate();
      const last = first[MAX_ENTRIES - 1];
      const slice = names.slice(start, start + SLICE);
      const reachable = slice.filter(({ name }) => isReachable(folder, name, this.#settings));
      total += reachable.length;
      const next = last === undefined ? reachable : reachable.filter((each) => byKindAndName(each, last) < 0);
      if (next.length > 0) first = [...first, ...next].sort(byKindAndName).slice(0, MAX_ENTRIES);
    }
    return { names: first, isCut: total > MAX_ENTRIES };
  }
}

function byKindAndName(a: Sortable, b: Sortable): number {
  if (a.kind !== b.kind) return a.kind === 'directory' ? -1 : 1;
  return order.compare(a.name, b.name) || (a.name < b.name ? -1 : 1);
}

const timeOf = ({ version }: TreeEntry): string =>
  new Date(Number(version.mtimeNs / 1_000_000n)).toISOString().replace(/\.\d+Z$/, 'Z');

function asJson(path: string, { entries, isCut }: Folder): string {
  const list = entries.map((entry) => ({
    name: entry.name,
    type: entry.kind,
    ...(entry.kind === 'file' ? { size: Number(entry.version.size) } : {}),
    modified: timeOf(entry),
  }));
  return JSON.stringify({ path, entries: list, complete: !isCut });
}

/** The order that the query asks for: a column, and whether it begins with the last. */
interface Sort {
  readonly column: 'name' | 'size' | 'time';
  readonly isReversed: boolean;
}

const SORT = /[?&]sort=(-?)(name|size|time)(?:&|$)/;

function sortOf(url: string): Sort {
  const [, sign, column] = SORT.exec(url) ?? [];
  return { column: column === 'size' || column === 'time' ? column : 'name', isReversed: sign === '-' };
}

/** Sorts entries that are in the order of their names. Folders stay first, and have no size. */
function sortBy({ column, isReversed }: Sort, entries: readonly TreeEntry[]): TreeEntry[] {
  const sign = isReversed ? -1 : 1;
  const keyOf = ({ kind, version }: TreeEntry): number =>
    column === 'time' ? Number(version.mtimeNs) : kind === 'file' ? Number(version.size) : 0;
  return [...entries].sort((a, b) => {
    if (a.kind !== b.kind) return a.kind === 'directory' ? -1 : 1;
    return sign * (column === 'name' ? byKindAndName(a, b) : keyOf(a) - keyOf(b));
  });
}

function asPage(path: string, { entries, isCut }: Folder, sort: Sort): string {
  const title = escapeHtml(path);
  const parent = path === '/' ? '' : '<li><a href="../">..</a></li>';
  const cut = isCut ? `<p>The first ${MAX_ENTRIES} entries are shown.</p>` : '';
  const columns = (['name', 'size', 'time'] as const).map((column) => asColumn(column, sort)).join(' ');
  return `<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>${title}</title><style>${STYLE}</style></head><body><main><h1>${crumbsOf(path)}</h1><p>Sort by ${columns}. Times are in UTC.</p><ul>${parent}${entries.map(asItem).join('')}</ul>${cut}</main></body></html>\n`;
}

/** Links to the folders above, up to the mount, without the last one, which is shown. */
function crumbsOf(path: string): string {
  const names = path.split('/').slice(1, -1);
  const linkTo = (name: string, level: number): string =>
    level === 0 ? `<bdi>${name}</bdi>` : `<a href="${'../'.repeat(level)}"><bdi>${name}</bdi></a>`;
  const crumbs = names.map((name, index) => linkTo(escapeHtml(name), names.length - 1 - index));
  return [linkTo('/', names.length), ...crumbs].join(' ');
}

function asColumn(column: Sort['column'], sort: Sort): string {
  const isCurrent = column === sort.column;
  const sign = isCurrent && !sort.isReversed ? '-' : '';
  const arrow = isCurrent ? (sort.isReversed ? ' &darr;' : ' &uarr;') : '';
  return `<a href="?sort=${sign}${column}">${column}${arrow}</a>`;
}

function asItem(entry: TreeEntry): string {
  const isFile = entry.kind === 'file';
  const time = timeOf(entry);
  const name = `${encodeURIComponent(entry.name)}${isFile ? '' : '/'}`;
  const type = isFile ? mediaTypeOf(entry.name).split(';', 1)[0] : '';
  const size = isFile ? sizeOf(Number(entry.version.size)) : '';
  return `<li><a href="./${name}"><bdi>${escapeHtml(entry.name)}</bdi>${isFile ? '' : '/'}</a><i>${type}</i><span>${size}</span><time datetime="${time}">${time.slice(0, 16).replace('T', ' ')}</time></li>\n`;
}

function sizeOf(bytes: number): string {
  const exponent = Math.min(4, bytes < 1024 ? 0 : Math.floor(Math.log2(bytes) / 10));
  const unit = ['B', 'KiB', 'MiB', 'GiB', 'TiB'][exponent];
  const value = bytes / 1024 ** exponent;
  return `${value < 10 && exponent > 0 ? value.toFixed(1) : Math.round(value)} ${unit}`;
}

const escapeHtml = (text: string): string => text.replace(/[&<>"']/g, (c) => `&#${c.charCodeAt(0)};`);
