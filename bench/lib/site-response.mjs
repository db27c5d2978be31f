// Compares responses with what the model expects, for sites-model.mjs: headers, bytes, conditions, ranges, and one body for each
// ETag. Each function returns the difference as text, or undefined.
import { createHash } from 'node:crypto';
import { brotliDecompressSync, gunzipSync } from 'node:zlib';
import { evaluate, expected, hasDot, headersOf, ownPath, readPath, weigh } from './site-model.mjs';

const TYPES = {
  html: 'text/html; charset=utf-8',
  js: 'text/javascript; charset=utf-8',
  css: 'text/css; charset=utf-8',
  png: 'image/png',
};
const IMMUTABLE = 'public, max-age=31536000, immutable';
const DECODERS = { br: brotliDecompressSync, gzip: gunzipSync, identity: (bytes) => bytes };
const decode = (coding, bytes) => DECODERS[coding](bytes);

/** The first difference of a response from what the model expects of this site, if any. */
export function compare(run, asked, got, site) {
  const { setup } = run;
  if (asked.stray !== undefined) return got.status === 418 ? undefined : 'a name leads out of the roots';
  const want = expected(site, setup, asked);
  if (want.kind === 'passed') return comparePassed(got, want, setup);
  if (got.status === 418) return 'passed on';
  if (want.kind === 'redirect') return compareRedirect(got, want, asked, setup);
  if (want.kind === 'listing') return compareListing(got, want, site, setup, asked);
  if (want.kind === 'gone' && got.status === 404)
    return got.headers['cache-control'] === 'no-store' && /^text\/plain/.test(got.headers['content-type'])
      ? undefined
      : 'a missing chunk';
  if (want.kind === 'gone') return site.kept.has(want.path) ? 'gone' : undefined;
  return compareFile(run, asked, got, site, want);
}

function comparePassed(got, want, setup) {
  if (want.error === 405 && !setup.fallthrough)
    return got.status === 405 && got.headers.allow === 'GET, HEAD' ? undefined : 'not a 405';
  if (got.status !== 418) return 'not passed on';
  const error = got.headers['x-error'];
  if (setup.fallthrough) return error === 'none' ? undefined : `passed with the error ${error}`;
  return want.error === undefined
    ? /^40[034]$/.test(error)
      ? undefined
      : `error ${error}`
    : error === `${want.error}`
      ? undefined
      : `error ${error}`;
}

function compareRedirect({ status, headers }, want, asked, { mount }) {
  if (status !== want.status) return 'another status of a redirect';
  const from = new URL(`http://h${mount}${asked.path}`);
  const to = new URL(headers.location, from);
  if (to.host !== 'h') return 'a redirect to another host';
  if (decodeURIComponent(to.pathname) !== mount + want.to) return `a redirect to ${to.pathname}`;
  const query = new URLSearchParams(want.query ?? asked.query);
  if (new URLSearchParams(to.search).toString() !== query.toString()) return `a redirect with ${to.search}`;
  return status !== 301 || want.isRule
    ? headers['cache-control'] === 'no-cache'
      ? undefined
      : 'a redirect that is kept'
    : undefined;
}

function compareListing(got, { path }, site, setup, asked) {
  if (got.status !== 200)
    return got.status === 304 || got.status === 412 || got.status === 206 ? undefined : 'no listing';
  if (asked.method === 'HEAD' || !/json/.test(got.headers['content-type']) || got.headers['content-encoding'])
    return undefined;
  const { symlinks, dotfiles } = setup;
  const isHidden = (at) =>
    (dotfiles !== 'allow' && hasDot(at)) || (site.files.get(at)?.isOutside && symlinks !== 'follow');
  const below = [...site.files.keys(), ...site.folders].filter((at) => at.startsWith(path) && !isHidden(at));
  const names = below
    .map((at) => at.slice(path.length))
    .filter((name) => name !== '' && !name.includes('/'))
    .sort();
  const listed = JSON.parse(got.body)
    .entries.map(({ name }) => name)
    .filter((name) => !/\.(?:br|gz)$/.test(name))
    .sort();
  return `${names}` === `${listed}` ? undefined : `a listing of ${listed}, not ${names}`;
}

/** What the client may get for a file: its bytes in each coding that it may be sent in. */
function representations(site, setup, want, asked) {
  const file =
    want.kind === 'kept' ? { bytes: site.kept.get(want.path), copies: {} } : site.files.get(want.path);
  const isMade = setup.pages !== undefined && want.path.endsWith('.html');
  const copies = isMade ? [] : setup.copies.filter((coding) => file.copies[coding]);
  const weight = (coding) => weigh(asked.headers['accept-encoding'], coding);
  let codings = [...copies, 'identity'];
  const isFree = setup.compress || want.kind === 'kept';
  if (isFree) codings = ['br', 'gzip', 'identity'].filter((coding) => weight(coding) > 0);
  else codings = codings.toSorted((a, b) => weight(b) - weight(a)).slice(0, 1);
  return { file, isMade, codings, hasCopies: copies.length > 0, isFree };
}

function compareFile(run, asked, got, site, want) {
  const { setup } = run;
  const { file, isMade, codings, hasCopies, isFree } = representations(site, setup, want, asked);
  const { headers, status, body } = got;
  if (want.status === 404) {
    if (status !== 404 || headers.etag || headers['cache-control'] !== 'no-cache')
      return 'not a page with 404';
  } else if (![200, 206, 304, 412, 416].includes(status)) return `status ${status}`;
  const hasBody = asked.method === 'GET' && (status < 300 || status === 404);
  const coding = headers['content-encoding'] ?? (hasBody || isFree ? 'identity' : codings[0]);
  const isWhole = asked.method === 'GET' && (status === 200 || status === 404);
  if (isWhole || status === 206) {
    if (!codings.includes(coding)) return `coded as ${coding}`;
    if (isWhole && Number(headers['content-length']) !== body.length) return 'another Content-Length';
  }
  if (isWhole) {
    const plain = decode(coding, body);
    if (isMade) {
      const config = JSON.stringify(setup.pages.config);
      if (!plain.includes(file.id) || !plain.includes(config)) return 'another page';
      if (setup.pages.csp && !headers['content-security-policy']) return 'no policy';
    } else if (!plain.equals(file.bytes)) return 'other bytes';
    if (!isFree && !isMade && coding !== 'identity' && !body.equals(file.copies[coding]))
      return 'another copy';
  }
  const wrong = compareHeaders(setup, asked, got, site, want, { file, isMade, hasCopies, isFree });
  if (wrong !== undefined || want.status === 404) return wrong;
  return compareConditions(run, asked, got, { file, isMade, coding, isFree, want });
}

function compareHeaders(setup, asked, { headers, status }, site, want, { file, isMade, hasCopies, isFree }) {
  if (status >= 412) return undefined;
  const { path } = readPath(asked.path);
  const rules = headersOf(site.rules.headers, path);
  if (want.isInPlace || want.isNegotiated) {
    const own = headersOf(site.rules.headers, ownPath(site, setup, want.path));
    const isOwn = want.isInPlace || !rules['cache-control'];
    const cacheControl = (isOwn ? own : rules)['cache-control'];
    Object.assign(rules, { ...own, ...rules, 'cache-control': cacheControl });
  }
  for (const [name, value] of Object.entries(rules))
    if (name.startsWith('x-') && headers[name] !== value) return `${name}: ${headers[name]}, not ${value}`;
  const cacheControl =
    want.status === 404 ? 'no-cache' : (rules['cache-control'] ?? cacheControlOf(want, setup));
  if (headers['cache-control'] !== cacheControl)
    return `Cache-Control: ${headers['cache-control']}, not ${cacheControl}`;
  const vary = (headers.vary ?? '').toLowerCase().split(/,\s*/);
  if (rules.vary && !vary.includes('origin')) return 'Vary without that of a rule';
  if (want.isNegotiated) {
    if (!vary.includes('accept-language') || (setup.cookie && !vary.includes('cookie')))
      return 'Vary without the language';
    if (want.path.endsWith('.html') && headers['content-language'] !== want.language)
      return `Content-Language: ${headers['content-language']}`;
  }
  if (hasCopies && !vary.includes('accept-encoding')) return 'Vary without the coding';
  if (!hasCopies && !isFree && vary.includes('accept-encoding')) return 'Vary with a coding';
  const type = TYPES[want.path.split('.').at(-1)];
  if (status === 200 && type && headers['content-type'] !== type)
    return `Content-Type: ${headers['content-type']}`;
  const date = headers['last-modified'];
  if (date && (isMade || want.kind === 'kept')) return 'a Last-Modified';
  return date && file.date && !hasCopies && Date.parse(date) !== file.date * 1000
    ? 'another Last-Modified'
    : undefined;
}

function cacheControlOf({ kind, path }, { cacheControl, fallback }) {
  if (kind === 'kept') return IMMUTABLE;
  for (const rule of [cacheControl ?? []].flat()) {
    if (rule === false) return undefined;
    if (rule instanceof RegExp && rule.test(path)) return IMMUTABLE;
    if (rule === 'no-store') return rule;
    if (rule === '1h' && !(fallback && path.endsWith('.html'))) return 'public, max-age=3600';
  }
  return 'public, max-age=0';
}

function compareConditions(run, asked, got, { file, isMade, coding, isFree, want }) {
  const { setup } = run;
  const { headers, status, body } = got;
  const key = `${coding} ${isMade ? `${file.id}${JSON.stringify(setup.pages.config)}` : (file.id ?? want.path)}`;
  if (asked.method === 'GET' && status === 200) {
    const hash = createHash('sha1').update(body).digest('base64');
    const known = headers.etag && run.bodies.get(headers.etag);
    if (known && (known.hash !== hash || known.coding !== coding)) return 'an ETag of other bytes';
    if (headers.etag) run.bodies.set(headers.etag, { hash, coding });
    if (setup.etag === false ? headers.etag : !headers.etag && file.bytes.length < 1e5)
      return `ETag: ${headers.etag}`;
    const isKept = isMade || (isFree && coding !== 'identity');
    for (const name of [key, headers.etag])
      run.known.set(name, { hash, tag: headers.etag, body: isKept ? body : undefined });
    const target = setup.mount + asked.path;
    if (headers.etag) run.seen.set(target, [...(run.seen.get(target) ?? []), headers.etag].slice(-4));
  }
  if (status === 412 && isFree) return undefined;
  if (status === 412)
    return /if-(?:un)?m/.test(Object.keys(asked.headers).join()) ? compareFailed(run, asked, key) : 'a 412';
  // A copy has the later of two dates, which a 416 does not say.
  const hasNoDate = isMade || want.kind === 'kept' || (status === 416 && coding !== 'identity');
  const date = hasNoDate ? undefined : Date.parse(headers['last-modified']) / 1000 || file.date;
  const raw = bytesOf();
  const learned = setup.etag === 'content' ? run.known.get(key)?.tag : undefined;
  const tag = headers.etag ?? learned;
  // A 416 names no ETag.
  const { range } = asked.headers;
  const conditions = status === 416 && (tag === undefined || isFree) ? { range } : asked.headers;
  const result = evaluate(
    { method: asked.method, headers: conditions },
    { tag, date, size: raw?.length ?? 200 },
  );
  if (status === 416) {
    const copies = isFree && !isMade ? Object.values(file.copies) : [];
    const sizes = [raw, ...copies].map((each) => each?.length);
    const isRight = sizes.some((size) => headers['content-range'] === `bytes */${size}`);
    return raw === undefined || want.kind === 'kept' || (result.status === 416 && isRight)
      ? undefined
      : 'a 416';
  }
  // A page whose bytes are not known yet.
  if (raw === undefined && asked.headers.range && result.status < 300)
    return [200, 206].includes(status) ? undefined : `status ${status}`;
  if (result.status !== status) return `status ${status}, not ${result.status}`;
  if (status === 304) return body.length === 0 ? undefined : 'a body of a 304';
  if (status === 206) return compareParts(got, result.ranges, raw);
  return asked.method === 'HEAD' && raw && Number(headers['content-length']) !== raw.length
    ? 'another Content-Length'
    : undefined;

  /** The bytes of the representation, if they are known. */
  function bytesOf() {
    if (isMade) return run.known.get(key)?.body;
    if (isFree && coding !== 'identity') return headers.etag && run.known.get(headers.etag)?.body;
    return coding === 'identity' ? file.bytes : file.copies[coding];
  }
}

/** A 412 is right if no ETag of the request is the one that this representation has had. */
function compareFailed({ known, setup }, asked, key) {
  const { hash } = known.get(key) ?? {};
  const match = asked.headers['if-match'];
  if (match === undefined || setup.etag === 'stat') return undefined;
  if (match === '*') return 'a 412 for *';
  return hash && setup.etag !== false && known.get(match)?.hash === hash
    ? 'a 412 for the same bytes'
    : undefined;
}

function compareParts({ headers, body }, ranges, raw) {
  const type = /^multipart\/byteranges; boundary=(.+)$/.exec(headers['content-type']);
  const parts = [];
  if (type === null) parts.push([headers['content-range'], body]);
  else
    for (const part of body.toString('latin1').split(`--${type[1]}`).slice(1, -1)) {
      const end = part.indexOf('\r\n\r\n');
      parts.push([
        /content-range: (.+)/i.exec(part)[1].trim(),
        Buffer.from(part.slice(end + 4, -2), 'latin1'),
      ]);
    }
  const sent = [];
  for (const [range, bytes] of parts) {
    const [, first, last, size] = (/^bytes (\d+)-(\d+)\/(\d+)$/.exec(range) ?? []).map(Number);
    if (size !== raw.length || !raw.subarray(first, last + 1).equals(bytes))
      return `the part ${range} of other bytes`;
    sent.push([first, last]);
  }
  const covers = ([start, end]) => sent.some(([first, last]) => first <= start && end <= last);
  return ranges.every(covers) ? undefined : 'missing parts';
}

/** RFC 9111 §4.1: whether a cache would have answered this request with an earlier response that is another one. */
export function reuse({ stored, setup }, asked, { status, headers, body }, site) {
  const { method, path, query } = asked;
  if (method !== 'GET' || asked.stray || /if-|range/.test(Object.keys(asked.headers).join()))
    return undefined;
  const responses = stored.get(site) ?? stored.set(site, new Map()).get(site);
  const list = responses.get(path + query) ?? responses.set(path + query, []).get(path + query);
  const plain = status === 418 ? '' : decode(headers['content-encoding'] ?? 'identity', body);
  const outcome = `${status} ${headers.location} ${createHash('sha1').update(plain).digest('hex')}`;
  const names = (headers.vary ?? '')
    .toLowerCase()
    .split(/,\s*/)
    .filter((name) => name !== '' && name !== 'origin');
  const other = list.find(
    (each) =>
      each.names.every((name) => each.headers[name] === asked.headers[name]) && each.outcome !== outcome,
  );
  if (status !== 418 && headers['cache-control'] !== 'no-store')
    list.push({ names, headers: asked.headers, outcome });
  return other === undefined || setup.compress ? undefined : `a cache would send ${JSON.stringify(other)}`;
}

/** Whether a response during a deployment has only bytes of the time since its request. */
export function isPossible({ status, headers, body }, sites) {
  if (status >= 500) return false;
  if (status !== 200 || body.length === 0) return true;
  const plain = decode(headers['content-encoding'] ?? 'identity', body);
  return /json|plain/.test(headers['content-type']) && !plain.includes('#/')
    ? true
    : sites.some(({ files }) =>
        [...files.values()].some(({ id, bytes }) => bytes.equals(plain) || plain.includes(id)),
      );
}
