import { assertJsonTextWithinLimits } from '../http/body/json-limits.ts';
import { HttpError } from '../http/reply/http-error.ts';
import { isListOf, isObject, isString } from '../options/rules.ts';
import { type Slot, takeSlot } from './place.ts';

/** Looks at the parsed operations before any file is received; throws HttpError. */
export type CheckOperations = (operations: unknown) => void;

/** The operations with a place for each expected file. */
export interface Plan {
  readonly operations: unknown;
  /** By name of the file's part. */
  readonly files: ReadonlyMap<string, readonly Slot[]>;
}

/** A client may name one file at several paths: this many per allowed file. */
const PATHS_PER_FILE = 5;

/** The text of `operations` as JSON: one request, or a list of them. */
export function readOperations(text: string, maxValues: number): unknown {
  assertJsonTextWithinLimits(text, maxValues);
  const operations = parse(text, 'operations', 'BAD_OPERATIONS');
  if (typeof operations === 'object' && operations !== null) return operations;
  throw new HttpError(400, 'Multipart field "operations" must be a JSON object', { code: 'BAD_OPERATIONS' });
}

/** The text of `map` as JSON: part names, each with a list of paths. Counts are checked before anything is built. */
export function readMap(text: string, maxFiles: number): Record<string, string[]> {
  assertJsonTextWithinLimits(text, 10_000 + maxFiles * (PATHS_PER_FILE + 1));
  const map = parse(text, 'map', 'BAD_MAP');
  if (!isObject(map)) throw badMap('must be a JSON object');
  const lists = Object.values(map as Record<string, unknown>);
  if (!lists.every(isListOf(isString))) throw badMap('must give a list of paths for each file');
  if (lists.length > maxFiles) throw tooManyFiles(maxFiles);
  const paths = (lists as string[][]).reduce((sum, list) => sum + list.length, 0);
  if (paths > maxFiles * PATHS_PER_FILE) {
    throw new HttpError(413, `Multipart field "map" may name at most ${maxFiles * PATHS_PER_FILE} paths`, {
      code: 'TOO_MANY_PATHS',
    });
  }
  return map as Record<string, string[]>;
}

/** Takes the places of all files; any path that is wrong refuses the whole request. */
export function makePlan(operations: unknown, map: Record<string, string[]>): Plan {
  const files = new Map<string, readonly Slot[]>();
  for (const name of Object.keys(map)) {
    const paths = map[name] as string[];
    if (paths.length > 0)
      files.set(
        name,
        paths.map((path) => takeSlot(operations, path)),
      );
  }
  return { operations, files };
}

/** The refusal of one file too many. */
export function tooManyFiles(maxFiles: number): HttpError {
  return new HttpError(413, `A request may have at most ${maxFiles} files`, { code: 'TOO_MANY_FILES' });
}

function parse(text: string, field: string, code: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new HttpError(400, `Multipart field "${field}" must be JSON`, { code });
  }
}

function badMap(fault: string): HttpError {
  return new HttpError(400, `Multipart field "map" ${fault}`, { code: 'BAD_MAP' });
}
