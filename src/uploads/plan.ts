import { assertJsonTextWithinLimits } from '../http/body.ts';
import { HttpError } from '../http/reply.ts';
import { formatValue, isListOf, isObject, isString } from '../options/rules.ts';
import { type Form, malformedForm, type Part, type TextPart, tooManyFiles } from './form.ts';

/** A member of the operations that a file is assigned to. */
interface MapTarget {
  readonly holder: Record<string, unknown>;
  readonly key: string;
}

/** The content of the parts `operations` and `map`. */
export interface UploadPlan<Params> {
  /** The result of the caller's `parse` for the operations. */
  readonly params: Params;
  /** The places of each expected file, by the name of its part. */
  readonly targets: ReadonlyMap<string, readonly MapTarget[]>;
}

interface PlanLimits {
  readonly maxFiles: number;
  readonly maxValues: number;
}

type UploadMap = Record<string, string[]>;

/** The maximum number of paths per allowed file, on average. */
const PATHS_PER_FILE = 5;
const MAX_PATH_LENGTH = 512;
const MAX_PATH_STEPS = 32;
const INDEX = /^(?:0|[1-9]\d{0,9})$/;

/**
 * The value of a reserved target until its file arrives. It is not null, so no second path can lead to it or
 * below it.
 */
const RESERVED: object = Object.freeze({});

/**
 * Reads parts until both `operations` and `map` have arrived. Refuses invalid ones before a file is received.
 *
 * @throws HttpError 400 and 413, and the errors of `parse`.
 */
export async function readPlan<Params>(
  form: Form,
  limits: PlanLimits,
  parse: (operations: unknown) => Params,
): Promise<UploadPlan<Params>> {
  let read: { operations: unknown; params: Params } | undefined;
  let map: UploadMap | undefined;
  for (;;) {
    const part = await form.next();
    if (part === undefined)
      throw malformedForm(`Multipart field "${read ? 'map' : 'operations'}" is missing`);
    if (part.kind !== 'text') throw fileBeforePlan(part);
    if (part.name === 'operations') {
      if (read !== undefined) throw duplicateField(part);
      const operations = readOperations(part.value, limits.maxValues);
      read = { operations, params: parse(operations) };
    } else if (part.name === 'map') {
      if (map !== undefined) throw duplicateField(part);
      map = readMap(part.value, limits.maxFiles);
    }
    if (read === undefined || map === undefined) continue;
    return { params: read.params, targets: reserveTargets(read.operations, map) };
  }
}

export const duplicateField = ({ name }: TextPart): HttpError =>
  malformedForm(`Multipart field ${formatValue(name)} is given twice`);

export const missingFilename = ({ name }: Part): HttpError =>
  malformedForm(`The part ${formatValue(name)} has no filename`);

/**
 * Creates the error for a file part before the `map`. A part that was created from a Blob has a filename, so
 * it is a file.
 */
function fileBeforePlan(part: Part): HttpError {
  if (part.kind === 'unnamed-file') return missingFilename(part);
  return part.name === 'operations' || part.name === 'map'
    ? malformedForm(`Multipart field "${part.name}" must be a text part, without a filename`)
    : malformedForm('Files must come after the fields "operations" and "map"');
}

function readOperations(text: string, maxValues: number): object {
  assertJsonTextWithinLimits(text, maxValues);
  const operations = parseJson(text, 'operations', 'BAD_OPERATIONS');
  if (typeof operations === 'object' && operations !== null) return operations;
  throw new HttpError(400, 'Multipart field "operations" must be a JSON object', { code: 'BAD_OPERATIONS' });
}

/** Parses the `map`, and checks the counts before any target is reserved. */
function readMap(text: string, maxFiles: number): UploadMap {
  assertJsonTextWithinLimits(text, 10_000 + maxFiles * (PATHS_PER_FILE + 1));
  const map = parseJson(text, 'map', 'BAD_MAP');
  if (!isObject(map)) throw badMap('must be a JSON object');
  const lists = Object.values(map as Record<string, unknown>);
  if (!lists.every(isListOf(isString))) throw badMap('must have a list of paths for each file');
  if (lists.length > maxFiles) throw tooManyFiles(maxFiles);
  const paths = (lists as string[][]).reduce((sum, list) => sum + list.length, 0);
  if (paths > maxFiles * PATHS_PER_FILE) {
    throw new HttpError(413, `Multipart field "map" may list at most ${maxFiles * PATHS_PER_FILE} paths`, {
      code: 'TOO_MANY_PATHS',
    });
  }
  return map as UploadMap;
}

/** Reserves the targets of all files. One wrong path refuses the whole request. */
function reserveTargets(operations: unknown, map: UploadMap): ReadonlyMap<string, readonly MapTarget[]> {
  const targets = new Map<string, readonly MapTarget[]>();
  for (const [name, paths] of Object.entries(map)) {
    if (paths.length === 0) continue;
    targets.set(
      name,
      paths.map((path) => reservePath(operations, path)),
    );
  }
  return targets;
}

/**
 * Resolves a path of the `map` and reserves its target. Creates no members: each step must be an existing
 * item or own property, and the target must be null (attacks: `__proto__`, an index of 4294967294, 100 000
 * steps, overwriting `query`).
 *
 * @throws HttpError 400.
 */
function reservePath(operations: unknown, path: string): MapTarget {
  const steps = path.length > MAX_PATH_LENGTH ? [] : path.split('.');
  // In a batch the path begins with the index of the operation; files may only replace its variables.
  const below = steps.indexOf('variables');
  if (
    below !== (Array.isArray(operations) ? 1 : 0) ||
    steps.length < below + 2 ||
    steps.length > MAX_PATH_STEPS
  ) {
    throw badPath(
      path,
      Array.isArray(operations) ? 'must be "<index>.variables.<name>"' : 'must be "variables.<name>"',
    );
  }
  let node = operations;
  let holder: unknown;
  for (const step of steps) {
    if (!has(node, step)) throw badPath(path, 'does not exist in "operations"');
    holder = node;
    node = (node as Record<string, unknown>)[step];
  }
  const target = { holder: holder as Record<string, unknown>, key: steps.at(-1) as string };
  if (node === RESERVED) throw badPath(path, 'is listed twice');
  if (node !== null) throw badPath(path, 'must point to null in "operations"');
  target.holder[target.key] = RESERVED;
  return target;
}

function has(node: unknown, step: string): boolean {
  if (Array.isArray(node)) return INDEX.test(step) && Number(step) < node.length;
  return typeof node === 'object' && node !== null && step !== '__proto__' && Object.hasOwn(node, step);
}

function parseJson(text: string, field: string, code: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new HttpError(400, `Multipart field "${field}" must be JSON`, { code });
  }
}

function badMap(fault: string): HttpError {
  return new HttpError(400, `Multipart field "map" ${fault}`, { code: 'BAD_MAP' });
}

function badPath(path: string, fault: string): HttpError {
  return new HttpError(400, `Multipart field "map": the path ${formatValue(path)} ${fault}`, {
    code: 'BAD_MAP_PATH',
  });
}
