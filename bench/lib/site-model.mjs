// What docs/static-files.md, static-sites.md, static-rules.md and earlier-builds.md promise for a request, for sites-model.mjs.
// Nothing of src/ is used here.

const ASSET = /\.(?:js|css|json|png|bin|txt|md|gz|br)$/;
const KEPT_SCRIPT = /\.(?:js|css)$/;
/** Whether a path has the extension of an asset, and is therefore no page. */
const isAsset = (path) => ASSET.test(path.replace(/\/$/, ''));
const isPage = (path) => path.endsWith('.html');

export function isNavigation({ headers }) {
  return headers['sec-fetch-mode'] === 'navigate' || /text\/html/.test(headers.accept ?? '');
}

/** The decoded path of a target, or why it matches no file. */
export function readPath(target) {
  const encoded = target.split('?')[0];
  if (/%(?:2f|5c|00)|\\/i.test(encoded)) return { isRefused: true };
  let path;
  try {
    path = decodeURIComponent(encoded);
  } catch {
    return { isRefused: true };
  }
  const segments = path.split('/').slice(1);
  const isEmpty = segments.slice(0, -1).includes('');
  if (isEmpty || segments.some((segment) => segment === '.' || segment === '..'))
    return { isRefused: true, path };
  return { isRefused: false, path };
}

const hasDots = (path) => /\/\.\.?(?:\/|$)/.test(path);
/** Whether a path has a segment that begins with a dot, which is no request for `.well-known`. */
export const hasDot = (path) => /\/\./.test(path.replace(/^\/\.well-known(?=\/|$)/, ''));

/** The one site of a request for the model: files and folders that a request can reach. */
class Reachable {
  constructor(site, setup) {
    this.site = site;
    this.setup = setup;
  }

  file(path) {
    const { dotfiles, symlinks, rules } = this.setup;
    if (dotfiles !== 'allow' && hasDot(path)) return undefined;
    if (rules === true && /^\/_(?:redirects|headers)$/.test(path)) return undefined;
    const found = this.site.files.get(path);
    return found?.isOutside && symlinks !== 'follow' ? undefined : found;
  }

  folder(path) {
    return !(this.setup.dotfiles !== 'allow' && hasDot(path)) && this.site.folders.has(path);
  }
}

/** What a request gets: `file`, `redirect`, `listing`, `kept`, `gone`, `passed` or `refused`. */
export function expected(site, setup, asked) {
  const there = new Reachable(site, setup);
  if (asked.method !== 'GET' && asked.method !== 'HEAD') return { kind: 'passed', error: 405 };
  const { isRefused, path: decoded } = readPath(asked.path);
  // Without pages a slash after a file name is ignored.
  const path = setup.mode === 'plain' ? decoded?.replace(/(.)\/$/, '$1') : decoded;
  if (isRefused) {
    const usual = path?.replace(/\/{2,}/g, '/');
    if (setup.urls === undefined || usual === undefined || hasDots(usual)) return { kind: 'passed' };
    return { kind: 'redirect', status: 308, to: usual };
  }
  if (setup.dotfiles !== 'allow' && hasDot(path)) return missing(path, setup);
  const rule = ruleFor(site.rules.redirects, path, asked.query);
  if (rule?.isForced) return act(there, rule, asked, path);
  const own = lookUp(there, path);
  if (setup.languages.length > 0 && !hasLanguage(path, setup)) {
    const negotiated = inLanguage(there, path, own, asked);
    if (negotiated !== undefined) return negotiated;
  }
  if (own !== undefined) return own;
  if (setup.keep && path.startsWith('/assets/') && !isPage(path) && !path.endsWith('/') && !hasDot(path)) {
    if (site.kept.has(path)) return { kind: 'kept', path };
    if (KEPT_SCRIPT.test(path)) return { kind: 'gone' };
  }
  if (rule !== undefined) return act(there, rule, asked, path);
  if (setup.listing && path.endsWith('/') && there.folder(path.slice(0, -1)))
    return { kind: 'listing', path };
  return (isNavigation(asked) && translated(there, pageFor(there, path), asked)) || missing(path, setup);
}

function missing(path, setup) {
  return { kind: 'passed', error: setup.dotfiles === 'deny' && hasDot(path) ? 403 : 404 };
}

const fileOf = (path) => ({ kind: 'file', path, status: 200 });

/** What a path leads to, without rules, languages, and the pages for missing files. */
function lookUp(there, path) {
  const { mode, urls } = there.setup;
  const stem = path.replace(/\/$/, '');
  const has = (file) => there.file(file) !== undefined && !(isAsset(stem) && file !== path);
  const slashed = () =>
    !path.endsWith('/') && there.folder(path) ? { kind: 'redirect', status: 301, to: `${path}/` } : undefined;
  if (mode === 'plain') return path !== '/' && there.file(stem) ? fileOf(stem) : undefined;
  const index = `${stem}/index.html`;
  const page = `${stem}.html`;
  if (urls !== undefined) {
    const tried = path.endsWith('/') ? [index, page] : [path, page, index];
    const found = tried.find((file) => (file === index && path.endsWith('/') ? there.file(file) : has(file)));
    if (found === undefined) return slashed();
    const url = urlOf(there, found);
    return url === path ? fileOf(found) : { kind: 'redirect', status: 308, to: url };
  }
  if (path.endsWith('/')) return there.file(index) ? fileOf(index) : undefined;
  if (there.file(path)) return fileOf(path);
  if (mode === 'clean' && has(page)) return fileOf(page);
  if (mode === 'extensions' && has(page) && !(there.folder(path) && there.file(index))) return fileOf(page);
  return slashed();
}

/** The path whose rules a page has that is sent in place of another file. */
export function ownPath(site, setup, file) {
  return setup.urls === undefined ? file : urlOf(new Reachable(site, setup), file);
}

/** The one URL of a page. */
function urlOf(there, file) {
  if (!isPage(file)) return file;
  const stem = file.replace(/\/index\.html$/, '').replace(/\.html$/, '');
  if (stem === '') return '/';
  const isBoth = there.file(`${stem}.html`) && there.file(`${stem}/index.html`);
  const hasSlash = isBoth ? file.endsWith('/index.html') : there.setup.urls === 'slash';
  return hasSlash ? `${stem}/` : stem;
}

const hasLanguage = (path, { languages }) => languages.includes(path.split('/')[1]);

/** The languages of a visitor, best first: the cookie, then the lookup of RFC 4647 for each range, then those of the site. */
function preferred({ headers }, { languages, cookie }) {
  const best = [];
  const [, chosen] = (cookie && new RegExp(`(?:^|; )${cookie}=([^;]*)`).exec(headers.cookie ?? '')) || [];
  if (languages.includes(chosen)) best.push(chosen);
  const ranges = (headers['accept-language'] ?? '').split(',').map((part) => {
    const [range, weight] = part.trim().split(/;q=/);
    return { range, weight: Number(weight ?? 1) };
  });
  for (const { range, weight } of ranges.sort((a, b) => b.weight - a.weight)) {
    if (weight === 0) continue;
    for (let tag = range; tag !== ''; tag = tag.includes('-') ? tag.slice(0, tag.lastIndexOf('-')) : '') {
      const found = languages.find((each) => each.toLowerCase() === tag.toLowerCase());
      if (found === undefined) continue;
      best.push(found);
      break;
    }
  }
  return [...new Set([...best, ...languages])];
}

function inLanguage(there, path, own, asked) {
  const { setup } = there;
  const order = preferred(asked, setup);
  if (own?.kind === 'file') {
    if (!isPage(own.path)) return undefined;
    const others = setup.languages.filter((each) => there.file(`/${each}${own.path}`));
    if (others.length === 0) return undefined;
    // A page outside of the folders is in the default language.
    const best = order.find((each) => each === setup.languages[0] || others.includes(each));
    return {
      ...own,
      path: others.includes(best) ? `/${best}${own.path}` : own.path,
      isNegotiated: true,
      language: best,
    };
  }
  if (own !== undefined || isAsset(path)) return undefined;
  for (const language of order) {
    const found = lookUp(there, `/${language}${path}`);
    if (found?.kind === 'file') return { ...found, isNegotiated: true, language };
    if (found === undefined) continue;
    const to = found.to.slice(language.length + 1) || '/';
    if (to !== path) return { ...found, to };
    const moved = lookUp(there, found.to);
    if (moved?.kind === 'file') return { ...moved, isNegotiated: true, language };
  }
  return undefined;
}

/** The page for 404 in the language of the visitor. */
function translated(there, page, asked) {
  if (page?.status !== 404 || hasLanguage(page.path, there.setup)) return page;
  return { ...page, ...inLanguage(there, page.path, page, asked) };
}

/** The page in place of a missing file. */
function pageFor(there, path) {
  const { fallback, notFound } = there.setup;
  const folders = ['/'];
  for (let end = path.indexOf('/', 1); end > 0; end = path.indexOf('/', end + 1))
    folders.unshift(path.slice(0, end + 1));
  const nearest = (option, name) => {
    if (option === undefined) return undefined;
    const pages = option === 'nearest' ? folders.map((folder) => folder + name) : [`/${option}`];
    return pages.find((page) => there.file(page));
  };
  // With both, a folder with a page for 404 has no application.
  if (fallback === 'nearest' && notFound === 'nearest' && !isAsset(path)) {
    const folder = folders.find((each) => there.file(`${each}404.html`) ?? there.file(`${each}index.html`));
    if (folder === undefined) return undefined;
    if (!there.file(`${folder}404.html`)) return { ...fileOf(`${folder}index.html`), isInPlace: true };
    return { kind: 'file', path: `${folder}404.html`, status: 404, isInPlace: true };
  }
  const app = isAsset(path) ? undefined : nearest(fallback, 'index.html');
  if (app !== undefined) return { ...fileOf(app), isInPlace: true };
  const page = nearest(notFound, '404.html');
  return page && { kind: 'file', path: page, status: 404, isInPlace: true };
}

/** The first line whose path and parameters match. */
function ruleFor(lines, path, query) {
  const asked = new URLSearchParams(query);
  for (const line of lines) {
    const match = matchPath(line.from, path);
    if (match === undefined) continue;
    const values = { ...match };
    const isMet = Object.entries(line.query ?? {}).every(([name, value]) => {
      const given = asked.get(name);
      if (given === null) return false;
      if (!value.startsWith(':')) return given === value;
      values[value.slice(1)] = given;
      return true;
    });
    if (isMet) return { ...line, values };
  }
  return undefined;
}

/** The placeholders of a path that a pattern matches. */
export function matchPath(pattern, path) {
  const escaped = pattern.replace(/\/$/, '').replace(/[.+?^${}()|[\]\\]/g, '\\$&');
  const named = escaped.replace(/:(\w+)/g, '(?<$1>[^/]+)');
  const source = named.replace(/(\/?)\*(.*)/, (_all, slash, rest) =>
    slash && rest === '' ? '(?:/(?<splat>.*))?' : `${slash}(?<splat>.*)${rest}`,
  );
  const match = new RegExp(`^${source}/?$`, 's').exec(path);
  return match === null ? undefined : { splat: '', ...clean(match.groups) };
}

const clean = (groups = {}) =>
  Object.fromEntries(Object.entries(groups).map(([name, value]) => [name, value ?? '']));

function act(there, rule, asked, path) {
  const fill = (text, encode) => text.replace(/:(\w+)/g, (_all, name) => encode(rule.values[name] ?? ''));
  const [target, query] = rule.to.split('?');
  if (rule.status >= 300 && rule.status < 400) {
    const own =
      query === undefined ? (rule.query === undefined ? asked.query : '') : fill(query, encodeURIComponent);
    return {
      kind: 'redirect',
      status: rule.status,
      to: fill(target, (text) => text),
      query: own,
      isRule: true,
    };
  }
  const file = fill(target, (text) => text);
  if (there.file(file) === undefined || (isPage(file) && !isNavigation(asked)))
    return missing(path, there.setup);
  return { kind: 'file', path: file, status: rule.status, isInPlace: true };
}

/** The headers of all lines that match a path. */
export function headersOf(lines, path) {
  const values = {};
  for (const { from, headers } of lines) {
    if (!matchPath(from, path)) continue;
    for (const [name, value] of Object.entries(headers))
      values[name] = name in values ? `${values[name]}, ${value}` : value;
  }
  return values;
}

/** The codings that a client accepts, with their weights; the file itself unless it is refused. */
export function weigh(header, coding) {
  if (header === undefined) return coding === 'identity' ? 1 : 0;
  const weights = new Map(
    header.split(',').map((part) => {
      const [name, q] = part.trim().split(/;\s*q=/);
      return [name, Number(q ?? 1)];
    }),
  );
  if (weights.has(coding)) return weights.get(coding);
  if (coding !== 'identity') return weights.get('*') ?? 0;
  return weights.get('*') === 0 ? 0 : 1e-3;
}

/** The status of a request whose file has this validator, date (seconds) and size, by RFC 9110 §13.2.2 and §14. */
export function evaluate({ method, headers }, { tag, date, size }) {
  const lists = (value, isWeak) =>
    value.trim() === '*' || value.split(/,\s*/).some((each) => isSame(each, tag, isWeak));
  const seconds = (value) => Date.parse(value) / 1000;
  const { 'if-match': match, 'if-none-match': none, 'if-range': from, range } = headers;
  if (match !== undefined) {
    if (!lists(match, false)) return { status: 412 };
  } else if (headers['if-unmodified-since'] !== undefined && date !== undefined) {
    if (date > seconds(headers['if-unmodified-since'])) return { status: 412 };
  }
  if (none !== undefined) {
    if (lists(none, true)) return { status: 304 };
  } else if (headers['if-modified-since'] !== undefined && date !== undefined) {
    if (date <= seconds(headers['if-modified-since'])) return { status: 304 };
  }
  if (method !== 'GET' || range === undefined) return { status: 200 };
  if (from !== undefined && !(/^(?:W\/)?"/.test(from) ? isSame(from, tag, false) : seconds(from) === date))
    return { status: 200 };
  return readRanges(range, size);
}

function isSame(given, tag, isWeak) {
  if (tag === undefined) return false;
  const plain = (text) => text.replace(/^W\//, '');
  return isWeak ? plain(given) === plain(tag) : given === tag && !given.startsWith('W/');
}

function readRanges(header, size) {
  const ranges = [];
  for (const part of header.replace(/^bytes=/, '').split(/,\s*/)) {
    const [, first, last] = /^(\d*)-(\d*)$/.exec(part) ?? [];
    if (first === undefined || first + last === '') return { status: 200 };
    if (first !== '' && last !== '' && Number(last) < Number(first)) return { status: 200 };
    // A suffix of an empty file is all of it, and no part has a number.
    if (first === '' && size === 0 && Number(last) > 0) return { status: 200 };
    const start = first === '' ? Math.max(0, size - Number(last)) : Number(first);
    const end = first === '' || last === '' ? size - 1 : Math.min(size - 1, Number(last));
    if (start <= end) ranges.push([start, end]);
  }
  return ranges.length === 0 ? { status: 416 } : { status: 206, ranges };
}
