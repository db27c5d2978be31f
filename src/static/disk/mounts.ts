import { readFileSync } from 'node:fs';

// Milliseconds between two reads of the mount table, which takes about 20 microseconds.
const INTERVAL_MS = 100;
// The share of the time that reading may take on a system with thousands of mounts.
const MAX_SHARE = 0.01;

/** The file systems that are mounted below a directory (Linux; elsewhere none are known). */
export class Mounts {
  /** Increases when something is mounted or unmounted anywhere. */
  generation = 0;
  readonly #rootPath: () => string;
  readonly #read: () => string;
  #table = '';
  #rootOfPoints = '';
  /** Mount points below the root, relative to it and with a leading slash; nested ones first. */
  #points: readonly string[] = [];
  #nextReadAt = Number.NEGATIVE_INFINITY;

  /**
   * @param rootPath - returns the path of the directory, without symbolic links as soon as they are known
   * @param read - returns the text of the mount table
   */
  constructor(rootPath: () => string, read: () => string = readMountTable) {
    this.#rootPath = rootPath;
    this.#read = read;
  }

  /** Reads the mount table, at most every 100 ms. */
  refresh(now: number): void {
    if (now < this.#nextReadAt) return;
    const table = this.#read();
    this.#nextReadAt = now + Math.max(INTERVAL_MS, (performance.now() - now) / MAX_SHARE);
    const rootPath = this.#rootPath();
    if (table === this.#table && rootPath === this.#rootOfPoints) return;
    if (table !== this.#table) this.generation++;
    this.#table = table;
    this.#rootOfPoints = rootPath;
    this.#points = mountPointsBelow(rootPath, table);
  }

  /** The mount point that a URL path leads to; undefined for the file system of the root. */
  pointOf(urlPath: string): string | undefined {
    for (const point of this.#points) {
      if (urlPath.startsWith(point) && (urlPath.length === point.length || urlPath[point.length] === '/')) {
        return point;
      }
    }
    return undefined;
  }
}

function readMountTable(): string {
  try {
    return process.platform === 'linux' ? readFileSync('/proc/self/mountinfo', 'latin1') : '';
  } catch {
    return '';
  }
}

/**
 * Returns the mount points below a directory. The fifth field of a line of mountinfo is the mount point
 * (proc(5)).
 */
function mountPointsBelow(directory: string, table: string): string[] {
  const prefix = directory.endsWith('/') ? directory : `${directory}/`;
  const points: string[] = [];
  for (const line of table.split('\n')) {
    const point = unescapeOctal(line.split(' ', 5)[4] ?? '');
    if (point.startsWith(prefix)) points.push(`/${point.slice(prefix.length)}`);
  }
  return points.sort((a, b) => b.length - a.length);
}

/**
 * Decodes the octal escapes of spaces, tabs, line breaks and backslashes; the table is read as Latin-1, paths
 * are UTF-8.
 */
function unescapeOctal(text: string): string {
  const bytes = text.replace(/\\([0-7]{3})/g, (_, digits: string) =>
    String.fromCharCode(Number.parseInt(digits, 8)),
  );
  return Buffer.from(bytes, 'latin1').toString('utf8');
}
