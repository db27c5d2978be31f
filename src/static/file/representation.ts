import { formatHttpDate } from '../../http/conditions/date.ts';
import type { Validators } from '../../http/conditions/preconditions.ts';
import type { Identity } from './file-version.ts';

/** Header names and values in turn, as `writeHead` takes them. */
export type HeaderList = readonly string[];

/** What is known of one representation of a file: the file as it is, or in one content coding. */
export interface Facts {
  /** The content coding; undefined for the file as it is. */
  readonly coding: string | undefined;
  readonly type: string;
  readonly size: number;
  readonly cacheControl: string | undefined;
  /** The value of `Vary`, where the same URL has several representations. */
  readonly vary: string | undefined;
  readonly acceptRanges: boolean;
}

/** One representation with its headers, ready to be sent. */
export interface Representation extends Validators {
  readonly facts: Facts;
  /** The file on disk, as asked for. */
  readonly path: string;
  /** Without symbolic links. */
  readonly realPath: string;
  readonly identity: Identity;
  /** The bytes, when they are held in memory. */
  readonly body: Buffer | undefined;
  /** Headers of a 200. */
  readonly whole: HeaderList;
  /** Headers of a 304: those of the 200 but for the ones that describe the body. */
  readonly shared: HeaderList;
}

/** Builds a representation's headers once, for all the answers it will give. */
export function represent(
  facts: Facts,
  source: Pick<Representation, 'path' | 'realPath' | 'identity' | 'body'>,
  validators: Validators,
): Representation {
  const shared: string[] = [];
  if (facts.cacheControl !== undefined) shared.push('Cache-Control', facts.cacheControl);
  if (validators.tag !== undefined) shared.push('ETag', validators.tag);
  if (validators.modified !== undefined) {
    shared.push('Last-Modified', formatHttpDate(validators.modified));
  }
  if (facts.vary !== undefined) shared.push('Vary', facts.vary);
  if (facts.acceptRanges) shared.push('Accept-Ranges', 'bytes');
  // The type is decided here; a browser that guesses another one from the bytes may run what was uploaded as text.
  shared.push('X-Content-Type-Options', 'nosniff');
  const whole = [...describe(facts, facts.size, facts.type), ...shared];
  const { path, realPath, identity, body } = source;
  return {
    path,
    realPath,
    identity,
    body,
    tag: validators.tag,
    modified: validators.modified,
    facts,
    whole,
    shared,
  };
}

/** Tags must differ between codings even where the bytes do not (RFC 9110 §8.8.3.3). */
export function codedTag(tag: string, coding: string | undefined): string {
  return coding === undefined ? tag : tag.replace(/"$/, `-${coding}"`);
}

/** Headers of the body itself, for `length` bytes of it. */
export function describe(facts: Facts, length: number, type: string): string[] {
  const headers = ['Content-Type', type, 'Content-Length', String(length)];
  if (facts.coding !== undefined) headers.push('Content-Encoding', facts.coding);
  return headers;
}
