import type { TrustedTexts } from './manifest.ts';
import { readDocuments, versionOf } from './read-files.ts';

/** Milliseconds between two checks of the files. */
const PERIOD = 500;

/** The list that is replaced when its files change. */
export interface Reloadable {
  replace(texts: TrustedTexts): Promise<void>;
}

/**
 * Replaces the list when its file or directory has changed. A version counts when two checks have seen it, so that
 * files are not read while they are written. A failed reload is reported, and the list stays as it is. The checks
 * keep neither the process nor the list alive.
 */
export function watchDocuments(list: Reloadable, path: string, onError: (error: unknown) => void): void {
  const reference = new WeakRef(list);
  // The first check may find a change since the list was created.
  let current: string | undefined;
  let previous: string | undefined;

  async function check(): Promise<void> {
    // A missing file is a version too, which is reported once.
    const version = await versionOf(path).catch((error: unknown) => String(error));
    if (version !== current && version === previous) {
      current = version;
      try {
        const texts = await readDocuments(path);
        await reference.deref()?.replace(texts);
      } catch (error) {
        onError(error);
      }
    }
    previous = version;
  }

  const schedule = (): void => {
    setTimeout(() => {
      if (reference.deref() !== undefined) void check().then(schedule);
    }, PERIOD).unref();
  };
  schedule();
}
