import { close, constants, fstat, open } from 'node:fs';
import { type FileVersion, type OpenFileVersion, sameVersion } from './file-version.ts';

/** An open file of a known version. */
export interface OpenFile {
  readonly fd: number;
  readonly version: OpenFileVersion;
  readonly close: () => void;
}

const FLAGS = constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0);

/**
 * Opens a file that was found inside the root, and checks that it still has the expected version. The callback receives
 * neither an error nor a file when the version differs.
 */
export function openVersion(
  { realPath, version }: { readonly realPath: string; readonly version: FileVersion },
  done: (error: unknown, file?: OpenFile) => void,
): void {
  open(realPath, FLAGS, (openError, fd) => {
    if (openError !== null) {
      done(openError);
      return;
    }
    fstat(fd, { bigint: true }, (error, stats) => {
      if (error === null && sameVersion(version, stats)) {
        done(undefined, { fd, version: stats, close: () => closeQuietly(fd) });
        return;
      }
      closeQuietly(fd);
      done(error ?? undefined);
    });
  });
}

/** Ignores the error: the descriptor is freed even when `close` fails. */
function closeQuietly(fd: number): void {
  close(fd, () => {});
}
