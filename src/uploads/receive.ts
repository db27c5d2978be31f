import { GraphQLError } from 'graphql';
import { assertJsonTextWithinLimits } from '../http/body.ts';
import { HttpError } from '../http/reply.ts';
import { byOption, count, flag, formatValue, isListOf, resolveOptions } from '../options/rules.ts';
import { UPLOAD_OPTIONS } from '../options/scopes.ts';
import { isObject, isString } from '../options/values.ts';
import { type Exchange, malformedForm, type Part, type TextPart, tooManyFiles } from './form.ts';
import { RECEIPT_RULES, Receipt, type ReceiptSettings, receiptSettings } from './receipt.ts';

/** The functions that the receiver of a request calls. */
interface UploadCallbacks<Params> {
  /** Called once with the JSON value of `operations`, before any file is received. */
  parse(operations: unknown): Params;
  /** Called with an error of the storage that the client does not see. */
  report(error: unknown): void;
}

/**
 * Receives a request of the GraphQL multipart request specification, and assigns its files to the variables in the
 * result of `parse`. Resolves with that result when every file is stored or, with the option `streaming`, when the
 * header of every file has arrived. Rejects with an HttpError for a client's mistake.
 */
export function receiveUploads<Params>(
  exchange: Exchange,
  settings: UploadSettings,
  { parse, report }: UploadCallbacks<Params>,
): Promise<Params> {
  return new Promise((resolve, reject) => {
    const receipt = new Receipt(exchange, settings, report);
    const plan = new UploadPlan(receipt, settings, parse);
    const take = (part: Part): void => {
      plan.take(part);
      if (settings.streaming && plan.isReady()) resolve(plan.finish());
    };
    receipt
      .receive(take, () => plan.finish())
      .then(() => plan.finish())
      .then(resolve, reject);
  });
}

/** The checked `uploads` option. */
interface UploadSettings extends ReceiptSettings {
  readonly streaming: boolean;
  /** Maximum number of values in the JSON of `operations`. */
  readonly maxValues: number;
}

const RULES = { ...RECEIPT_RULES, maxFiles: count(20), streaming: flag(false) };

/** `operations`, `map`, and a few parts that are ignored. */
const MAX_FIELDS = 10;

/** Checks the `uploads` option and adds defaults, once per handler. */
export function resolveUploadOptions(
  given: unknown,
  limits: { readonly maxValues: number; readonly bodyBytes: number; readonly bodyTimeout: number },
): UploadSettings {
  const options = resolveOptions(UPLOAD_OPTIONS, given, RULES);
  const settings = receiptSettings(options, {
    scope: UPLOAD_OPTIONS,
    maxFiles: options.maxFiles,
    maxFields: MAX_FIELDS,
    maxFieldBytes: limits.bodyBytes,
    fieldOption: byOption('limits.bodyBytes'),
    bodyTimeout: limits.bodyTimeout,
    readerError,
  });
  return { ...settings, streaming: options.streaming, maxValues: limits.maxValues };
}

/** With the option `streaming`, a file may be refused while resolvers read it. */
function readerError({ message, code, status }: HttpError): GraphQLError {
  return new GraphQLError(message, { extensions: { code, http: { status } } });
}

/** A member of the operations that a file is assigned to. */
interface MapTarget {
  readonly holder: Record<string, unknown>;
  readonly key: string;
}

type UploadMap = Record<string, string[]>;

/** What the parts `operations` and `map` say, and the files that have begun to arrive. */
class UploadPlan<Params> {
  readonly #receipt: Receipt;
  readonly #limits: Pick<UploadSettings, 'maxFiles' | 'maxValues'>;
  readonly #parse: (operations: unknown) => Params;
  #read: { readonly operations: unknown; readonly params: Params } | undefined;
  #map: UploadMap | undefined;
  /** The places of each expected file, by the name of its part. */
  #targets: ReadonlyMap<string, readonly MapTarget[]> | undefined;
  readonly #taken = new Set<string>();

  constructor(
    receipt: Receipt,
    limits: Pick<UploadSettings, 'maxFiles' | 'maxValues'>,
    parse: (operations: unknown) => Params,
  ) {
    this.#receipt = receipt;
    this.#limits = limits;
    this.#parse = parse;
  }

  /** @throws HttpError 400 and 413, and the errors of `parse`. */
  take(part: Part): void {
    const mapped = this.#targets?.get(part.name);
    if (part.kind === 'text' && part.name.includes('[')) throw nestedName(part);
    if (part.kind === 'text' && (part.name === 'operations' || part.name === 'map')) this.#readField(part);
    else if (part.kind !== 'text' && this.#targets === undefined) throw fileBeforePlan(part);
    else if (part.kind !== 'file') {
      if (mapped !== undefined) throw missingFilename(part);
    }
    // A file that is not in the map, or whose name was already used, is received and discarded.
    else if (mapped === undefined || this.#taken.has(part.name)) part.stream.resume();
    else {
      const file = this.#receipt.store(part);
      this.#taken.add(part.name);
      for (const { holder, key } of mapped) holder[key] = file;
    }
  }

  #readField(part: TextPart): void {
    const { maxValues, maxFiles } = this.#limits;
    if ((part.name === 'map' ? this.#map : this.#read) !== undefined) throw duplicateField(part);
    if (part.name === 'map') this.#map = readMap(part.value, maxFiles);
    else {
      const operations = readOperations(part.value, maxValues);
      this.#read = { operations, params: this.#parse(operations) };
    }
    if (this.#read !== undefined && this.#map !== undefined)
      this.#targets = reserveTargets(this.#read.operations, this.#map);
  }

  /** Whether every mapped file has begun to arrive. */
  isReady(): boolean {
    return this.#targets?.size === this.#taken.size;
  }

  /**
   * Returns the result of `parse`, with its files.
   *
   * @throws HttpError 400 if a part is missing.
   */
  finish(): Params {
    if (this.#read === undefined || this.#targets === undefined)
      throw malformedForm(`Multipart field "${this.#read ? 'map' : 'operations'}" is missing`);
    if (this.isReady()) return this.#read.params;
    const name = [...this.#targets.keys()].find((expected) => !this.#taken.has(expected));
    throw new HttpError(400, `The file ${formatValue(name)} of the "map" is missing`, {
      code: 'FILE_MISSING',
    });
  }
}

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

const duplicateField = ({ name }: TextPart): HttpError =>
  malformedForm(`Multipart field ${formatValue(name)} is given twice`);

/** No text part of the specification has such a name, which other parsers turn into an object. */
const nestedName = ({ name }: Part): HttpError =>
  malformedForm(`The name of the text part ${formatValue(name)} must not be nested`);

const missingFilename = ({ name }: Part): HttpError =>
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
  if (lists.length > maxFiles) throw tooManyFiles(maxFiles, UPLOAD_OPTIONS);
  const paths = (lists as string[][]).reduce((sum, list) => sum + list.length, 0);
  if (paths > maxFiles * PATHS_PER_FILE) {
    const limit = `${maxFiles * PATHS_PER_FILE} paths, ${PATHS_PER_FILE} for each file${byOption('uploads.maxFiles')}`;
    throw new HttpError(413, `Multipart field "map" may list at most ${limit}`, { code: 'TOO_MANY_PATHS' });
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
