import { createHash, type Hash } from 'node:crypto';
import type { ByteRange } from '../../http/conditions/ranges.ts';
import type { OpenFileVersion } from '../disk/file-version.ts';
import { etagOfFile, hashRanges } from '../disk/hash.ts';
import { etagForCoding, type Representation } from '../file/representation.ts';
import type { StaticSettings } from '../options.ts';

// Milliseconds after a write during which another one is likely, for example to a log file.
const RECENT = 60_000;

/**
 * Decides whether a response may be completed after its file changed during the transfer. A new stat alone
 * does not show whether the bytes changed: data may have been appended, or only permissions, owner, name or
 * times may have changed. So the part of the file that the response promised is read again and compared.
 *
 * - A response with a content ETag: with the ETag.
 * - Any other response: with a hash of the bytes that were sent. It is computed if ETags come from the
 *   content, and for files that were modified recently. Without it, only changes that leave size and mtime
 *   alone are accepted.
 */
export class ContentVerifier {
  readonly #representation: Representation;
  readonly #hasContentEtag: boolean;
  readonly #sent: Hash | undefined;

  constructor(representation: Representation, etag: StaticSettings['etag']) {
    this.#representation = representation;
    this.#hasContentEtag = etag === 'content' && representation.tag !== undefined;
    const needsHash = etag === 'content' || wasModifiedRecently(representation);
    if (!this.#hasContentEtag && needsHash) this.#sent = createHash('sha1');
  }

  /** Records bytes of the file that are sent. */
  record(bytes: Buffer): void {
    this.#sent?.update(bytes);
  }

  /** Whether `ranges` of the file still have the bytes that the response promised and sent. */
  async verify(
    fd: number,
    current: OpenFileVersion,
    ranges: readonly ByteRange[],
    isWanted: () => boolean,
  ): Promise<boolean> {
    const { version, metadata, tag } = this.#representation;
    if (current.size < version.size) return false;
    if (this.#hasContentEtag) {
      const etag = await etagOfFile(fd, metadata.size, isWanted);
      return etag !== undefined && etagForCoding(etag, metadata.coding) === tag;
    }
    if (this.#sent !== undefined) {
      const hash = await hashRanges(fd, ranges, isWanted);
      return hash?.digest().equals(this.#sent.digest()) === true;
    }
    return current.mtimeNs === version.mtimeNs && current.size === version.size;
  }
}

function wasModifiedRecently({ version }: Representation): boolean {
  return Math.abs(Date.now() - Number(version.mtimeNs / 1_000_000n)) < RECENT;
}
