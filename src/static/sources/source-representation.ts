import { createHash } from 'node:crypto';
import { Stats } from 'node:fs';
import type { SourceStat } from '../../../types/sources.ts';
import { type Metadata, Representation } from '../file/representation.ts';
import type { StaticSettings } from '../options.ts';
import { versionOf } from './resolve-source-file.ts';

/** A representation of a file of a source, with the version that it describes. */
export class SourceRepresentation extends Representation {
  readonly sourceVersion: string | undefined;

  constructor(
    content: SourceContent,
    metadata: Metadata,
    tag: string | undefined,
    modified: number | undefined,
  ) {
    const { path, body, stat } = content;
    // An invalid date counts as none.
    const time = BigInt(stat.mtime?.getTime() || 0) * 1_000_000n;
    const version = { dev: 0n, ino: 0n, size: BigInt(stat.size), mtimeNs: time, ctimeNs: time };
    super(metadata, { path, realPath: path, version, body }, { tag, modified });
    this.sourceVersion = versionOf(stat);
  }
}

/** A file with its content, which is in memory if it is small enough. */
export interface SourceContent {
  readonly path: string;
  readonly stat: SourceStat;
  readonly body: Buffer | undefined;
  readonly contentEtag: string | undefined;
}

/** Returns the ETag of the content. A file that was not hashed is identified by the version of its source. */
export function tagOf({ stat, contentEtag }: SourceContent, { etag }: StaticSettings): string | undefined {
  if (etag === 'none') return undefined;
  if (etag === 'content' && contentEtag !== undefined) return contentEtag;
  const version = createHash('sha1').update(stat.version).digest('base64url');
  return `"${stat.size.toString(16)}-${version}"`;
}

const REGULAR_FILE = 0o100_444;

/** The argument of `setHeaders`, with the fields that a source knows. */
export function statsOf({ size, mtime: given }: SourceStat): Stats {
  // Sources in JavaScript may have null.
  const mtime = given ?? new Date(0);
  const time = { mtime, ctime: mtime, mtimeMs: mtime.getTime(), ctimeMs: mtime.getTime() };
  return Object.assign(Object.create(Stats.prototype), { size, mode: REGULAR_FILE, ...time });
}
