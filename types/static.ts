import type { Stats } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { ByteSize, ConnectRequest, Duration, Hook, MaybePromise, NextFunction } from './connect.ts';

/** The middleware that `staticFiles` returns. It is a request listener of `node:http` too. */
export interface StaticFilesHandler {
  (req: IncomingMessage, res: ServerResponse, next?: NextFunction): void;
  /**
   * Lets go its caches and timers. Responses that have begun continue, and later requests call `next`. A middleware that lives
   * as long as its process need not be closed.
   */
  close(): void;
}

/**
 * Chooses the directory of a request: a path below that of the option `roots`, absolute or relative to it. `undefined`, or any other place,
 * matches no file. The parameter may be declared as Express's `Request`.
 */
export type RootChooser = Hook<[request: ConnectRequest], MaybePromise<string | URL | undefined>>;

/** Limits of the memory cache of one `staticFiles` middleware. */
export interface StaticCacheOptions {
  /**
   * Bytes of files in memory: bodies, and about one kilobyte of metadata per file. `0` caches no bodies:
   * every body is read from disk. Bodies up to 256 KiB are cached at the first request, those up to 8 MiB when they are
   * requested often. Bodies are evicted before metadata. A file without its body keeps its ETag and headers, and is read from
   * disk. Bodies get at least half of the memory.
   * @default an eighth of the memory that the process may use, at most 268435456 (256 MiB), shared by all
   * middlewares that do not set it
   */
  maxBytes?: ByteSize | undefined;
  /**
   * The time for which a cached file is served without checking the disk. `0` checks for each request, so
   * that no response is older than its request. A file that changed within the last `revalidateAfter` is
   * always checked.
   * @default 0
   */
  revalidateAfter?: Duration | undefined;
}

/** Options of `staticFiles`. Options with the name of a serve-static option have the same meaning. */
export interface StaticFilesOptions {
  /**
   * Whether directories are pages: `dir/` sends `dir/index.html`, and `dir` redirects to `dir/`.
   * When false, a directory is a 404 and a slash after a file name is ignored.
   * @default true if `index`, `fallback` or `notFound` is given, otherwise false
   */
  html?: boolean | undefined;
  /**
   * Name of the index file for `dir/`, or several names in order. `false`: `dir` redirects to `dir/`, and
   * `dir/` is a 404, for example for a directory listing that is mounted later. Ignored if `html` is false.
   * @default 'index.html'
   */
  index?: string | readonly string[] | false | undefined;
  /**
   * Extensions to try in order when a path matches no file. With `['html']`, `/about` sends `about.html`. A
   * directory with an index file has priority. Paths with the extension of an asset are not tried.
   * @default false
   */
  extensions?: false | string | readonly string[] | undefined;
  /**
   * Whether URLs have no `.html`, as in builds of VitePress, Astro, Next.js export and Docusaurus. `/guide`
   * sends `guide.html`, also if there is a directory `guide/`. `/guide/` sends `guide/index.html`. Implies
   * `html` and `extensions: ['html']`. `'no-slash'` and `'slash'` also give each page one URL: `/guide` or `/guide/` for both
   * `guide.html` and `guide/index.html`. The other spellings redirect (308) to it with their query: `/guide.html`,
   * `/guide/index.html`, `//guide`, and `/guide/` or `/guide`. If both files exist, `/guide` is the first and `/guide/` the second.
   * @default false
   */
  cleanUrls?: boolean | 'no-slash' | 'slash' | undefined;
  /**
   * Path of a file below the root that is sent with status 404 for page navigations that match no file, such
   * as `'404.html'`. It has `Cache-Control: no-cache`. Other requests call `next`, see `fallthrough`. `'nearest'`: the file
   * `404.html` of the nearest folder above the path that has one.
   * @default none
   */
  notFound?: string | undefined;
  /**
   * Path of a file below the root that is sent with status 200 for page navigations that match no file, for
   * single-page applications. Missing scripts, images and other assets stay a 404. `'nearest'`: the file `index.html` of the
   * nearest folder above the path that has one, for several applications below one mount. If `notFound` is `'nearest'` too, a
   * folder with a `404.html` is no application: missing pages below it get that one.
   * @default none
   */
  fallback?: string | undefined;
  /**
   * Whether a request that matches no file calls `next()`. When false, it calls `next(error)` with an error
   * whose `status` is 404, 403 for refused dotfiles and paths above the root, or 400 for malformed paths.
   * Methods other than GET and HEAD then get a 405 with `Allow` (RFC 9110 §15.5.6).
   * @default true
   */
  fallthrough?: boolean | undefined;
  /**
   * The treatment of a path with a segment that begins with a dot. `'ignore'`: it matches no file. `'deny'`:
   * the same, and with `fallthrough: false` the error has status 403. `'allow'` serves the file. `.well-known` as
   * the first segment is always served (RFC 8615).
   * @default 'ignore'
   */
  dotfiles?: 'ignore' | 'deny' | 'allow' | undefined;
  /**
   * Whether the directory may be missing when the middleware is created. `'throw'`: it throws an error with the code
   * `ERR_STATIC_ROOT`. `'allow'`: requests match no file until the directory exists, such as that of the first build, and a
   * line is logged once. `fallback` and `notFound` may then be missing too.
   * @default 'throw'
   */
  missing?: 'throw' | 'allow' | undefined;
  /**
   * `'inside'`: a symbolic link that leads out of the root is a 404, even if it is switched during a request.
   * `'follow'`: links may lead anywhere.
   * @default 'inside'
   */
  symlinks?: 'inside' | 'follow' | undefined;
  /**
   * Whether users fill the directory. Pictures, audio, video and `.txt` are shown with types of a fixed list; every other file,
   * such as HTML, SVG, PDF and XML, is a download. All have a policy that lets nothing run. Such files are no pages, so that
   * options for pages throw.
   * @default false
   */
  untrusted?: boolean | undefined;
  /**
   * Requires links that `signUrl` has signed. Any other request gets 403, before the file is looked up. No cache keeps a file
   * longer than its link is valid.
   * @default none
   */
  signed?: SignedOptions | undefined;
  /**
   * `'content'` or `true`: a strong ETag from the bytes, equal on every server and after every deployment of
   * the same bytes. `'stat'`: a hash of inode, size and timestamps in nanoseconds, without reading the file.
   * `false`: none (RFC 9110 §8.8.3).
   * @default 'content'
   */
  etag?: 'content' | 'stat' | boolean | undefined;
  /**
   * How long browsers and shared caches may use a file without asking: one rule, or a list whose first rule that applies decides.
   * A file to which none applies is revalidated (`public, max-age=0`). It is decided when a file is loaded into the cache, not for
   * each request.
   * @default [] (every file is revalidated)
   */
  cacheControl?: CacheControlRule | readonly CacheControlRule[] | undefined;
  /**
   * Whether to send compressed copies to clients that accept the coding: `app.js.br`, `app.js.zst` or
   * `app.js.gz` for `app.js`. `true` means `['br', 'zstd', 'gzip']`. The order of the list decides among
   * codings that the client weights equally (RFC 9110 §12.5.3). A copy that does not decompress to the bytes
   * of its source is ignored.
   * @default false
   */
  precompressed?: boolean | readonly Precompressed[] | undefined;
  /**
   * Whether to compress files that have no compressed copy. Each content is compressed once per coding in the
   * background, when a client first accepts it: files from 1 KiB to 8 MiB, with half of a CPU core on average and up to 32 MiB
   * of memory. Until then, clients get the file itself. Ranges are always ranges of the file itself.
   * @default false
   */
  compress?: boolean | undefined;
  /**
   * Additions to HTML pages: a configuration, a Content-Security-Policy with the hashes of their inline code, and
   * the integrity of their scripts and styles. Needs the package `parse5-html-rewriting-stream`.
   * @default none
   */
  pages?: PagesOptions | undefined;
  /**
   * Where copies of immutable files outlive their build, so that open pages of earlier builds can load their chunks.
   * @default none
   */
  keep?: KeepOptions | undefined;
  /**
   * Redirects, rewrites and headers by path, from the files `_redirects` and `_headers` of the directory, in the format of Netlify
   * and Cloudflare, which are read again when they change and cannot be requested. An object adds lines behind theirs. A mistake
   * in a file becomes a warning with its line, and the last good rules stay in force; one in the option throws.
   * @default false
   */
  rules?: boolean | StaticRulesOptions | undefined;
  /**
   * The directory that contains all those which a function in place of `dir` chooses. No name leads out of it, whatever it was
   * made of. It must exist.
   * @default none; required with a function
   */
  roots?: string | URL | undefined;
  /**
   * Whether a directory without an index file is listed: as a page, or as JSON for clients that prefer it. The list has what
   * requests can reach, at most 1000 entries. Everybody who can reach the directory can read it. Implies `html`.
   * @default false
   */
  listing?: boolean | undefined;
  /**
   * The extensions of files beside a file with the same content in another format: `'md'` for pages, `'avif'` and `'webp'` for
   * images. A client that names the type in `Accept`, and does not prefer the file, gets `guide.md` or `guide.html.md` for
   * `guide.html`. The order decides among types that the client weights equally. An object also has languages.
   * @default [] (none)
   */
  variants?: readonly Variant[] | VariantsOptions | undefined;
  /**
   * Limits of the memory cache. `false` caches no bodies.
   * @default an eighth of the memory, at most 256 MiB for all middlewares; always revalidated
   */
  cache?: false | StaticCacheOptions | undefined;
  /**
   * Called before the headers of a file are set, also for 304 and HEAD. Headers that it sets are kept. `path`
   * is the path on disk. An exception is passed to `next`.
   * @default none
   */
  setHeaders?: Hook<[res: ServerResponse, path: string, stat: Stats], void> | undefined;
}

/**
 * A rule of the option `cacheControl`.
 *
 * - The name of a build tool (`'vite'`, `'astro'`, `'next'`, `'webpack'`, `'angular'`): files with a hash in their name, except
 *   pages, are immutable for a year.
 * - A RegExp of the file's path below the root, such as `/^\/assets\//`: files that match are immutable for a year.
 * - A duration such as `'1h'`: the `max-age`, at most a year. With `fallback` or the name of a build tool it applies to no
 *   page (`.html`), because a page names the assets of its build.
 * - `'immutable'`: for a year. Any other text is the value of the header.
 * - `false`: no header.
 * - A function of the path below the root, such as `/docs/index.html` for a request of `/docs/`: returns a duration,
 *   `'immutable'`, a value or `false`; `undefined` asks the next rule.
 */
export type CacheControlRule = false | string | RegExp | ((path: string) => string | false | undefined);

/** Which links lead to files. */
export interface SignedOptions {
  /**
   * The secrets of the links, each of at least 32 bytes and equal in all processes. The first one signs, all of them verify: to
   * change the key, put a new one in front, and remove the old one when its links have expired.
   */
  keys: string | Uint8Array | readonly (string | Uint8Array)[];
}

/** What `signUrl` puts into a link. */
export interface SignUrlOptions extends SignedOptions {
  /**
   * The time for which the link is valid, rounded up to seconds. A link lives up to a tenth longer, so that those of one
   * path and time are equal, and browsers keep the file.
   */
  expiresIn: Duration;
  /**
   * The address of the client that may use the link, as `req.ip` of Express.
   * @default any client
   */
  ip?: string | undefined;
}

/** Rules of the option, which come after those of the files. */
export interface StaticRulesOptions {
  /**
   * Lines such as `/old/* /new/:splat 301`.
   * @default none
   */
  redirects?: string | undefined;
  /**
   * Paths, each with indented lines such as `X-Frame-Options: DENY` below it.
   * @default none
   */
  headers?: string | undefined;
}

/** Copies of immutable files that outlive their build. */
export interface KeepOptions {
  /**
   * The directory of the copies, outside of the served one and on a disk that outlives the deployment. Several processes may
   * share it.
   */
  directory: string;
  /**
   * The number of days after its last use for which a file is kept.
   * @default 14
   */
  days?: number | undefined;
  /**
   * Bytes of all copies. The least recently used ones are deleted first.
   * @default 1073741824 (1 GiB)
   */
  maxBytes?: ByteSize | undefined;
}

/** What is added to each HTML file. The result is a page of its own, with its own ETag and codings. */
export interface PagesOptions {
  /**
   * Returns a JSON value for the scripts of the page, in `<script type="application/json" id="app-config">`. It is
   * called for each check of a page, and the page changes with its value. Everybody who can load the page can read it.
   * @default none
   */
  config?: (() => unknown) | undefined;
  /**
   * A Content-Security-Policy that allows the inline scripts and styles which the page has in its file. A string is the
   * policy, `true` a policy for own files. A policy that earlier middleware has set is used in its place.
   * @default false
   */
  csp?: boolean | string | PagePolicyOptions | undefined;
  /**
   * Whether own scripts and styles get the attribute `integrity`, and the response `Integrity-Policy`, with which
   * browsers refuse every script whose bytes are others.
   * @default false
   */
  integrity?: boolean | undefined;
}

/** The Content-Security-Policy of pages. */
export interface PagePolicyOptions {
  /**
   * The policy without the sources of inline code.
   * @default "default-src 'self'; base-uri 'self'; form-action 'self'; frame-ancestors 'self'; object-src 'none'"
   */
  policy?: string | undefined;
  /**
   * Whether browsers only report what they would refuse (`Content-Security-Policy-Report-Only`).
   * @default false
   */
  reportOnly?: boolean | undefined;
  /**
   * The URL to which browsers report what they refuse: a path, or an `https:` URL. Adds `report-to` and `report-uri` to the
   * policy, and the header `Reporting-Endpoints`.
   * @default none
   */
  reportTo?: string | undefined;
  /**
   * Whether each response has a new nonce in place of hashes. Such a page has no ETag and `Cache-Control: no-store`. A
   * function returns the nonce, such as that of an earlier middleware.
   * @default false
   */
  nonce?: boolean | ((req: IncomingMessage, res: ServerResponse) => string) | undefined;
}

/** The formats and the languages of a site. */
export interface VariantsOptions {
  /**
   * As the list in place of the object.
   * @default [] (none)
   */
  formats?: readonly Variant[] | undefined;
  /**
   * The folders of languages, such as `['en', 'de']`, that of the default first. A page without a language, such as `/guide`, is
   * answered with that of a folder, `/de/guide`: by the cookie, then by `Accept-Language` with the lookup of RFC 4647. A page
   * outside of the folders is in the default language.
   * @default [] (none)
   */
  language?: readonly string[] | undefined;
  /**
   * The name of a cookie whose value is the language that the visitor has chosen.
   * @default none
   */
  cookie?: string | undefined;
}

/** The extension of a file that shows the same as a page or an image in another format. */
export type Variant = 'md' | 'avif' | 'webp';

/** A content coding for which a compressed copy may exist: `.br`, `.zst` or `.gz`. */
export type Precompressed = 'br' | 'zstd' | 'gzip';
