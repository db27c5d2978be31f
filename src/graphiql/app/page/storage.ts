import type { Storage } from '@graphiql/toolkit';
import { endpoint } from '../settings.ts';

const prefix = `espalier:${endpoint}:`;

/** Stores the tabs, history and settings of this endpoint; in memory if the browser allows no storage. */
export const storage: Storage = createStorage();

function createStorage(): Storage {
  if (!usable()) return inMemory();
  const own = (): string[] => Object.keys(localStorage).filter((key) => key.startsWith(prefix));
  return {
    getItem: (key: string): string | null => localStorage.getItem(prefix + key),
    setItem: (key: string, value: string): void => localStorage.setItem(prefix + key, value),
    removeItem: (key: string): void => localStorage.removeItem(prefix + key),
    clear(): void {
      for (const key of own()) localStorage.removeItem(key);
    },
    get length(): number {
      return own().length;
    },
  };
}

function inMemory(): Storage {
  const kept = new Map<string, string>();
  return {
    getItem: (key) => kept.get(key) ?? null,
    setItem: (key, value) => void kept.set(key, value),
    removeItem: (key) => void kept.delete(key),
    clear: () => kept.clear(),
    get length() {
      return kept.size;
    },
  };
}

function usable(): boolean {
  try {
    localStorage.setItem(prefix, '');
    localStorage.removeItem(prefix);
    return true;
  } catch {
    return false;
  }
}
