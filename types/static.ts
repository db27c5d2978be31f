import type { Stats } from 'node:fs';
import type { ServerResponse } from 'node:http';
import type { Hook } from './connect.ts';

/** A content coding that may lie ready beside a file, as `.br`, `.zst` or `.gz`. */
export type Precompressed = 'br' | 'zstd' | 'gzip';

/** Bounds of what a `staticFiles` middleware keeps in memory, and for how long it may trust it. */
export interface StaticCacheOptions {
  /**
   * Bytes of bodies kept at once. `0` keeps none: every body is read again.
   * @default 67108864 (64 MiB)
   */
  maxBytes?: number | undefined;
  /**
   * Largest body kept, in bytes. Larger files are streamed from disk.
   * @default 262144 (256 KiB)
   */
  maxFileBytes?: number | undefined;
  /**
   * Files remembered at once, whatever their size.
   * @default 4096
   */
  maxEntries?: number | undefined;
  /**
   * Milliseconds for which a remembered file is answered without looking at the disk again.
   * `0` looks every time: an answer is never older than the request. Files that changed within the
   * window just passed are always looked at.
   * @default 0
   */
  revalidateAfter?: number | undefined;
}

/** Options of `staticFiles`. Names shared with serve-static mean what they mean there. */
export interface StaticFilesOptions {
  /**
   * Whether directories are pages: `dir/` answers `dir/index.html` and `dir` redirects to `dir/`.
   * When false a directory is 404 and a trailing slash is ignored.
   * @default false
   */
  html?: boolean | undefined;
  /**
   * Name, or names in order, answered for `dir/` when `html` is true.
   * @default 'index.html'
   */
  index?: string | readonly string[] | undefined;
  /**
   * Whether `dir` redirects to `dir/` when `html` is true. When false it is a miss.
   * @default true
   */
  redirect?: boolean | undefined;
  /**
   * Extensions tried, in order, when a path without one matches no file: `['html']` answers `/about` with `about.html`.
   * @default false
   */
  extensions?: false | readonly string[] | undefined;
  /**
   * File below the root, answered (200) to page navigations that match nothing, as single-page
   * applications want it. Scripts, images and other assets that are missing stay 404.
   * @default none
   */
  fallback?: string | undefined;
  /**
   * Whether a miss goes on to the next middleware. When false a miss is answered 404 here, and methods
   * other than GET and HEAD are answered 405 with `Allow` (RFC 9110 §15.5.6).
   * @default true
   */
  fallthrough?: boolean | undefined;
  /**
   * What a path with a segment that begins with a dot gets: `'ignore'` a miss, `'deny'` 403, `'allow'` the file.
   * `.well-known` as the first segment is always served (RFC 8615).
   * @default 'ignore'
   */
  dotfiles?: 'ignore' | 'deny' | 'allow' | undefined;
  /**
   * `'inside'`: a symbolic link that leads out of the root is a miss, also when it is swapped during the request.
   * `'follow'`: links may lead anywhere.
   * @default 'inside'
   */
  symlinks?: 'inside' | 'follow' | undefined;
  /**
   * `'content'` (or `true`): a strong tag from the bytes, equal on every machine and after every deploy of the same bytes.
   * `'stat'`: from identity, size and nanosecond times, without reading the file. `false`: none (RFC 9110 §8.8.3).
   * @default 'content'
   */
  etag?: 'content' | 'stat' | boolean | undefined;
  /**
   * Whether `Last-Modified` is sent and dates in conditional requests count (RFC 9110 §8.8.2).
   * @default true
   */
  lastModified?: boolean | undefined;
  /**
   * Whether ranges are offered and answered (RFC 9110 §14). When false `Range` is ignored.
   * @default true
   */
  acceptRanges?: boolean | undefined;
  /**
   * Whether `Cache-Control` is sent. When false `maxAge` and `immutable` do nothing.
   * @default true
   */
  cacheControl?: boolean | undefined;
  /**
   * How long a browser may use a file without asking: milliseconds, or a string such as `'1d'`. At most a year.
   * @default 0
   */
  maxAge?: number | string | undefined;
  /**
   * Which files never change under their name. `true`: all of them, for `maxAge`, or a year if that is not given.
   * A RegExp or a function of the path below the mount (`/app.3f2a91.js`): those that match, for a year; the others get `maxAge`.
   * @default false
   */
  immutable?: boolean | RegExp | ((path: string) => boolean) | undefined;
  /**
   * Whether files that lie compressed beside their source are answered to clients that accept the coding: `app.js.br`,
   * `app.js.zst`, `app.js.gz`. `true` is `['br', 'zstd', 'gzip']`; a list says which, best first among those the client
   * likes equally (RFC 9110 §12.5.3). One that is older than its source is ignored.
   * @default false
   */
  precompressed?: boolean | readonly Precompressed[] | undefined;
  /**
   * Bounds of the memory cache. `false` keeps no bodies.
   * @default 64 MiB of bodies, 256 KiB each, 4096 files, always fresh
   */
  cache?: false | StaticCacheOptions | undefined;
  /**
   * Called for each file about to be answered (304 and HEAD too), before our headers are set: what it sets stays.
   * `path` is the file's on disk. An error that it throws goes to `next`.
   * @default none
   */
  setHeaders?: Hook<[res: ServerResponse, path: string, stat: Stats], void> | undefined;
}
