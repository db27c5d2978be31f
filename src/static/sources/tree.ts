/** Converts a name such as `docs/a.html` to a path; undefined if no request can have this path. */
export function toSourcePath(name: string): string | undefined {
  const path = name.startsWith('/') ? name : `/${name}`;
  const isUsual = !path.includes('\\') && !path.includes('\0');
  const segments = path.slice(1).split('/');
  return isUsual && segments.every((segment) => !['', '.', '..'].includes(segment)) ? path : undefined;
}

/** The directories that contain the files of a source. */
export class DirectoryPaths {
  readonly #counts = new Map<string, number>();

  add(path: string): void {
    for (const directory of directoriesAbove(path)) {
      this.#counts.set(directory, (this.#counts.get(directory) ?? 0) + 1);
    }
  }

  remove(path: string): void {
    for (const directory of directoriesAbove(path)) {
      const count = (this.#counts.get(directory) ?? 0) - 1;
      if (count > 0) this.#counts.set(directory, count);
      else this.#counts.delete(directory);
    }
  }

  has(path: string): boolean {
    return this.#counts.has(path);
  }
}

function directoriesAbove(path: string): string[] {
  const directories: string[] = [];
  for (let end = path.lastIndexOf('/'); end > 0; end = path.lastIndexOf('/', end - 1)) {
    directories.push(path.slice(0, end));
  }
  return directories;
}
