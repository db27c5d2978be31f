import { close, constants, fstat, open } from 'node:fs';
import { type OpenIdentity, sameVersion } from './file-version.ts';
import type { Representation } from './representation.ts';

/** An open file of a known version. */
export interface Source {
  readonly fd: number;
  readonly identity: OpenIdentity;
  readonly close: () => void;
}

const FLAGS = constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0);

/**
 * Opens exactly the version that is described, which was found inside the root. Neither an error nor a source: the file
 * has changed.
 */
export function openVersion(
  { realPath, identity }: Pick<Representation, 'realPath' | 'identity'>,
  done: (error: unknown, source?: Source) => void,
): void {
  open(realPath, FLAGS, (error, fd) => {
    if (error !== null) {
      done(error);
      return;
    }
    fstat(fd, { bigint: true }, (failure, found) => {
      if (failure === null && sameVersion(identity, found)) {
        done(undefined, { fd, identity: found, close: () => release(fd) });
        return;
      }
      release(fd);
      done(failure ?? undefined);
    });
  });
}

/** The descriptor is ours alone: closing it can only fail after it has been freed. */
function release(fd: number): void {
  close(fd, () => {});
}
