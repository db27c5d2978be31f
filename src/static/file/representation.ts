import { formatHttpDate } from '../../http/conditions/date.ts';
import type { Validators } from '../../http/conditions/preconditions.ts';
import type { FileVersion } from '../disk/file-version.ts';

/** Alternating header names and values, as `writeHead` accepts them. */
export type HeaderList = readonly string[];

/** Metadata of one representation: the file itself, or one content coding of it (RFC 9110 §8). */
export interface Metadata {
  /** The content coding; undefined for the file itself. */
  readonly coding: string | undefined;
  readonly type: string;
  readonly size: number;
  readonly cacheControl: string | undefined;
  /** The value of `Vary`, when the URL has several representations. */
  readonly vary: string | undefined;
  readonly acceptRanges: boolean;
}

/** One representation with prebuilt headers. */
export interface Representation extends Validators {
  readonly metadata: Metadata;
  /** The file on disk. */
  readonly path: string;
  /** The path without symbolic links. */
  readonly realPath: string;
  readonly version: FileVersion;
  /** The bytes, when they are in memory. */
  readonly body: Buffer | undefined;
  readonly headers200: HeaderList;
  /** The headers of a 200 without the headers that describe the body. */
  readonly headers304: HeaderList;
}

/** Creates a representation and builds its headers once for all responses. */
export function createRepresentation(
  metadata: Metadata,
  { path, realPath, version, body }: Pick<Representation, 'path' | 'realPath' | 'version' | 'body'>,
  { tag, modified }: Validators,
): Representation {
  const headers304: string[] = [];
  if (metadata.cacheControl !== undefined) headers304.push('Cache-Control', metadata.cacheControl);
  if (tag !== undefined) headers304.push('ETag', tag);
  if (modified !== undefined) headers304.push('Last-Modified', formatHttpDate(modified));
  if (metadata.vary !== undefined) headers304.push('Vary', metadata.vary);
  if (metadata.acceptRanges) headers304.push('Accept-Ranges', 'bytes');
  // Browsers must not sniff the type: text that a user uploaded could otherwise run as a script.
  headers304.push('X-Content-Type-Options', 'nosniff');
  const headers200 = [...bodyHeaders(metadata, metadata.size, metadata.type), ...headers304];
  // For most files both paths are equal and share one string.
  const ownRealPath = realPath === path ? path : realPath;
  return { path, realPath: ownRealPath, version, body, tag, modified, metadata, headers200, headers304 };
}

/** Adds the coding to an ETag: ETags of two codings must differ even if their bytes do not (RFC 9110 §8.8.3.3). */
export function etagForCoding(etag: string, coding: string | undefined): string {
  return coding === undefined ? etag : etag.replace(/"$/, `-${coding}"`);
}

/** The headers that describe a body of `length` bytes. */
export function bodyHeaders({ coding }: Metadata, length: number, type: string): string[] {
  const headers = ['Content-Type', type, 'Content-Length', String(length)];
  if (coding !== undefined) headers.push('Content-Encoding', coding);
  return headers;
}
