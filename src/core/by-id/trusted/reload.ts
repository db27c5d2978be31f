import type { TrustedTexts } from './manifest.ts';
import { readDocuments, versionOf } from './read-files.ts';

/** Milliseconds between two checks of the files. */
const PERIOD = 500;

/** The list that is replaced when its files change. */
interface Reloadable {
  replace(texts: TrustedTexts): Promise<void>;
}

/**
 * Replaces the list when its file or directory has changed. A version counts when two checks have seen it, and when
 * it is still current after it was read, so that files are not read while they are written. A failed reload is
 * reported, and the list stays as it is. The checks keep neither the process nor the list alive.
 */
export function watchDocuments(list: Reloadable, path: string, onError: (error: unknown) => void): void {
  const reference = new WeakRef(list);
  // The first check may find a change since the list was created.
  let current: string | undefined;
  let previous: string | undefined;

  // A missing file is a version too, which is reported once.
  const readVersion = (): Promise<string> => versionOf(path).catch((error: unknown) => String(error));

  async function check(): Promise<void> {
    const version = await readVersion();
    if (version !== current && version === previous) await reload(version);
    previous = version;
  }

  async function reload(version: string): Promise<void> {
    const [read] = await Promise.allSettled([readDocuments(path)]);
    // Parts of different versions may not belong together, or even have errors. Later checks read them again.
    if ((await readVersion()) !== version) return;
    current = version;
    try {
      if (read.status === 'rejected') throw read.reason;
      await reference.deref()?.replace(read.value);
    } catch (error) {
      onError(error);
    }
  }

  const schedule = (): void => {
    setTimeout(() => {
      if (reference.deref() !== undefined) void check().then(schedule);
    }, PERIOD).unref();
  };
  schedule();
}
