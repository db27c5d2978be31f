import type { Stats } from 'node:fs';
import type { Representation } from './representation.ts';
import type { Dependency } from './resolve-file.ts';

/** All that is remembered of a path below the mount. */
export interface Entry {
  readonly kind: 'entry';
  readonly dependencies: readonly Dependency[];
  /** The file as it is. */
  readonly plain: Representation;
  /** The same content in codings that lie ready; empty for most files. */
  readonly coded: readonly Representation[];
  /** For the `setHeaders` hook, where there is one. */
  readonly stat: Stats | undefined;
  /** Bytes of bodies held. */
  readonly bytes: number;
  /** Whether the next request must read the file again, whatever its times say. */
  readonly young: boolean;
  /** The newest change that was seen, in milliseconds since the epoch. */
  readonly changedAt: number;
}
