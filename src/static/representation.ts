import { formatHttpDate, type Validators } from '../http/conditions.ts';
import type { FileVersion } from './version.ts';

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
  /** The headers of the options `pages`, `rules` and `untrusted`; undefined without them. */
  readonly added?: HeaderList | undefined;
}

/** Adds the headers of a list that another one, with names in lower case, does not have. */
export function addMissing(headers: HeaderList, others: HeaderList): HeaderList {
  const names = headers.filter((_, at) => at % 2 === 0);
  const missing = others.filter((_, at) => !names.includes((others[at - (at % 2)] as string).toLowerCase()));
  return [...headers, ...missing];
}

/** One representation. Its headers are built for each response: prebuilt ones would take 400 bytes per file. */
export class Representation implements Validators {
  readonly metadata: Metadata;
  /** The file on disk. */
  readonly path: string;
  /** The path without symbolic links. */
  readonly realPath: string;
  readonly version: FileVersion;
  readonly #modified: number | undefined;
  readonly #ambiguousUntil: number;
  readonly #lastModified: string | undefined;
  /** The ETag; set later for a file that is hashed in the background. */
  tag: string | undefined;
  /** The bytes, while they are in memory. */
  body: Buffer | undefined;

  constructor(
    metadata: Metadata,
    source: RepresentationSource,
    { tag, modified, ambiguousUntil = 0, lastModified }: RepresentationValidators,
  ) {
    this.metadata = metadata;
    this.path = source.path;
    // For most files both paths are equal and share one string.
    this.realPath = source.realPath === source.path ? source.path : source.realPath;
    this.version = source.version;
    this.body = source.body;
    this.tag = tag;
    this.#modified = modified;
    this.#ambiguousUntil = ambiguousUntil;
    this.#lastModified = lastModified ?? (modified === undefined ? undefined : formatHttpDate(modified));
  }

  /** The same bytes with other headers, if there are some. */
  with(headers: Partial<Metadata> | undefined): Representation {
    if (headers === undefined) return this;
    return new Representation({ ...this.metadata, ...headers }, this, {
      tag: this.tag,
      modified: this.#modified,
      ambiguousUntil: this.#ambiguousUntil,
      lastModified: this.#lastModified,
    });
  }

  /** The time of `Last-Modified`; undefined while it is ambiguous. */
  get modified(): number | undefined {
    return this.tag === undefined && Date.now() < this.#ambiguousUntil ? undefined : this.#modified;
  }

  get headers200(): string[] {
    const { metadata } = this;
    const headers = bodyHeaders(metadata, metadata.size, metadata.type);
    this.#addHeaders304(headers);
    return headers;
  }

  /** The headers of a 200 without the headers that describe the body. */
  get headers304(): string[] {
    const headers: string[] = [];
    this.#addHeaders304(headers);
    return headers;
  }

  #addHeaders304(headers: string[]): void {
    const { cacheControl, vary, acceptRanges } = this.metadata;
    if (cacheControl !== undefined) headers.push('Cache-Control', cacheControl);
    if (this.tag !== undefined) headers.push('ETag', this.tag);
    if (this.#lastModified !== undefined && this.modified !== undefined)
      headers.push('Last-Modified', this.#lastModified);
    if (vary !== undefined) headers.push('Vary', vary);
    if (acceptRanges) headers.push('Accept-Ranges', 'bytes');
    if (this.metadata.added !== undefined) headers.push(...this.metadata.added);
    // Browsers must not sniff the type: text that a user uploaded could otherwise run as a script.
    headers.push('X-Content-Type-Options', 'nosniff');
  }
}

/** Creates the representation of a coding. Only the compressor keeps bodies, so it lives as long as its response. */
export function encodedRepresentation(
  { metadata, path, realPath, version, modified }: Representation,
  coding: string,
  tag: string | undefined,
  body: Buffer | undefined,
): Representation {
  return new Representation(
    { ...metadata, coding, size: body?.length ?? 0, acceptRanges: false },
    { path, realPath, version, body },
    { tag, modified },
  );
}

interface RepresentationValidators extends Validators {
  /**
   * Until this time (milliseconds since the epoch), the date is not sent without an ETag: another write in the same
   * second would leave it unchanged (RFC 9110 §8.8.2.2).
   */
  readonly ambiguousUntil?: number;
  /** `modified` as a header, if it is known. */
  readonly lastModified?: string | undefined;
}

type RepresentationSource = Pick<Representation, 'path' | 'realPath' | 'version' | 'body'>;

/** Adds the coding to an ETag: ETags of two codings must differ even if their bytes do not (RFC 9110 §8.8.3.3). */
export function etagForCoding(etag: string, coding: string | undefined): string {
  return coding === undefined ? etag : etag.replace(/"$/, `-${coding}"`);
}

export function bodyHeaders({ coding }: Metadata, length: number, type: string): string[] {
  const headers = ['Content-Type', type, 'Content-Length', String(length)];
  if (coding !== undefined) headers.push('Content-Encoding', coding);
  return headers;
}
