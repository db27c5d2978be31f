import { File } from 'node:buffer';
import { open, unlink } from 'node:fs/promises';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { GraphQLError, GraphQLScalarType, Kind, type ValueNode } from 'graphql';
import type { UploadedFile, UploadedFileInfo } from '../../types/uploads.ts';
import { UPLOADED } from '../core/limits.ts';
import { codeOf, HttpError, isResourceError } from '../http/reply.ts';
import { assertSync, byOption, formatValue } from '../options/rules.ts';
import { UPLOAD_OPTIONS } from '../options/scopes.ts';
import type { FilePart } from './form.ts';
import { readAll, readSpool, Spool, type SpoolSettings } from './spool.ts';

interface StorageSettings extends SpoolSettings {
  readonly maxFileBytes: number;
  readonly accept: (file: UploadedFileInfo) => boolean;
}

/** The files of one request, from their part headers to the end of the response. */
export class StoredFiles {
  readonly #settings: StorageSettings;
  readonly #failed: (error: Error) => void;
  readonly #report: (error: Error) => void;
  readonly #spools = new Map<string, Spool>();
  readonly #stored: Promise<void>[] = [];
  readonly #saves: Save[] = [];
  #released = false;

  /**
   * `failed` is called as soon as a file cannot be stored or is too large; `report` with an error of `saveTo` whose
   * promise the application has dropped.
   */
  constructor(
    settings: StorageSettings,
    { failed, report }: { failed(error: Error): void; report(error: Error): void },
  ) {
    this.#settings = settings;
    this.#failed = failed;
    this.#report = report;
  }

  get count(): number {
    return this.#spools.size;
  }

  /** Returns the files that have arrived, and their bytes so far. */
  total(): { readonly files: number; readonly bytes: number } {
    let bytes = 0;
    for (const { size } of this.#spools.values()) bytes += size;
    return { files: this.count, bytes };
  }

  has(name: string): boolean {
    return this.#spools.has(name);
  }

  /**
   * Begins to store a file and returns the value for resolvers.
   *
   * @throws HttpError 415 when the option `accept` refuses the file.
   */
  store(part: FilePart): UploadedFile {
    const info = infoOf(part);
    if (!assertSync(this.#settings.accept(info), UPLOAD_OPTIONS, 'accept')) throw notAccepted(info);
    const spool = new Spool(this.#settings);
    if (this.#released) spool.release();
    this.#spools.set(part.name, spool);
    const file = createUploadedFile(info, spool, {
      saveTo: (path) => this.#save(info, spool, path),
      cut: (error) => this.#reportCut(info, error),
    });
    const stored = fillSpool(spool, part, this.#settings.maxFileBytes, () => {
      // The application may have frozen the value of a streamed file.
      Reflect.set(file, 'size', spool.size);
    });
    stored.catch(this.#failed);
    this.#stored.push(stored);
    return file;
  }

  /** Resolves when every file is stored. */
  async stored(): Promise<void> {
    await Promise.all(this.#stored);
  }

  /** Fails incomplete files and the resolvers that read them. */
  fail(error: Error): void {
    const reason = readerError(error);
    for (const spool of this.#spools.values()) {
      if (!spool.complete) spool.fail(reason);
    }
  }

  /** Frees memory and descriptors, also those of files that arrive later, when `saveTo` has written its files. */
  release(): void {
    this.#released = true;
    for (const spool of this.#spools.values()) spool.release();
    for (const each of this.#saves) void each.reportUnobserved(this.#report);
  }

  /** Reports a stream that nobody watches, such as one of `pipe`, and that the end of the response has cut off. */
  #reportCut(info: UploadedFileInfo, error: Error): void {
    if (this.#released) this.#report(failed('createReadStream', info, error));
  }

  #save(info: UploadedFileInfo, spool: Spool, path: string | URL): Promise<number> {
    const release = spool.hold();
    const saving = new Save(save(spool, path).finally(release), (error) => failed('saveTo', info, error));
    if (this.#released) void saving.reportUnobserved(this.#report);
    else this.#saves.push(saving);
    return saving;
  }
}

const THEN = 'then';

/** The promise of a `saveTo`. A resolver may drop it: then nobody would know that the file was not written. */
class Save extends Promise<number> {
  // The promises that `then` creates are usual ones.
  static override readonly [Symbol.species] = Promise;
  readonly #failed: Promise<Error | undefined>;
  #isObserved = false;

  constructor(saved: Promise<number>, describeFailure: (cause: Error) => Error) {
    super((resolve, reject) => {
      saved.then(resolve, reject);
    });
    this.#failed = super[THEN](() => undefined, describeFailure);
  }

  /** Called by `await`, `catch` and `finally` too. */
  override [THEN]<A = number, B = never>(
    onResolved?: ((value: number) => A | PromiseLike<A>) | null,
    onRejected?: ((reason: unknown) => B | PromiseLike<B>) | null,
  ): Promise<A | B> {
    this.#isObserved = true;
    return super[THEN](onResolved, onRejected);
  }

  async reportUnobserved(report: (error: Error) => void): Promise<void> {
    const error = await this.#failed;
    if (error !== undefined && !this.#isObserved) report(error);
  }
}

/** Resolves when the whole content of a part is in the spool, and calls `onComplete` before readers see its end. */
function fillSpool(
  spool: Spool,
  part: FilePart,
  maxFileBytes: number,
  onComplete: () => void,
): Promise<void> {
  const { stream } = part;
  return new Promise((resolve, reject) => {
    spool.onDrain = () => void stream.resume();
    const refuse = (error: HttpError): void => {
      // Immediately: the end of the part may follow in this turn, and would complete the file without this chunk.
      spool.fail(readerError(error));
      reject(error);
    };
    stream.on('data', (chunk: Buffer) => {
      if (spool.error !== undefined) reject(storageError(spool.error));
      else if (spool.size + chunk.length > maxFileBytes) refuse(fileTooLarge(part, maxFileBytes));
      else if (!spool.write(chunk)) stream.pause();
    });
    stream.on('end', () => {
      spool.end(() => {
        if (spool.error !== undefined) {
          reject(storageError(spool.error));
          return;
        }
        onComplete();
        resolve();
      });
    });
  });
}

function infoOf({ name, filename, mimetype, encoding }: FilePart): UploadedFileInfo {
  return { filename: cleanFilename(filename), mimetype, encoding, fieldName: name };
}

const notAccepted = (info: UploadedFileInfo): HttpError =>
  new HttpError(
    415,
    `${describe(info)} of the type ${formatValue(info.mimetype)} is not accepted${byOption('uploads.accept')}`,
    { code: 'FILE_NOT_ACCEPTED' },
  );

const fileTooLarge = (part: FilePart, maxFileBytes: number): HttpError =>
  new HttpError(
    413,
    `${describe(infoOf(part))} is larger than ${maxFileBytes} bytes; send a smaller one${byOption('uploads.maxFileBytes')}`,
    { code: 'FILE_TOO_LARGE' },
  );

const failed = (what: string, info: UploadedFileInfo, cause: Error): Error =>
  new Error(`${what} of ${nameOf(info)} failed: ${cause.message}`, { cause });

const describe = (info: UploadedFileInfo): string => `The file ${nameOf(info)}`;

/** Users know the filename, developers the name of the part. */
const nameOf = ({ filename, fieldName }: UploadedFileInfo): string =>
  `${formatValue(filename)} (part ${formatValue(fieldName)})`;

/** Converts an error for readers. With the option `streaming`, a file may be refused while resolvers read it. */
function readerError(error: Error): Error {
  if (!(error instanceof HttpError)) return error;
  const extensions = { code: error.code, http: { status: error.status } };
  return new GraphQLError(error.message, { extensions });
}

const SPECIFICATION = 'https://github.com/jaydenseric/graphql-multipart-request-spec';
// Control characters, lone surrogates, line and paragraph separators, and bidirectional controls, which show
// `gnp.exe` as `exe.png`.
const UNSAFE = /[\p{Cc}\p{Cs}\u2028\u2029\u200e\u200f\u061c\u202a-\u202e\u2066-\u2069]/gu;
const MAX_FILENAME_BYTES = 255;
const MAX_EXTENSION_LENGTH = 32;

/** An uploaded file, as resolvers receive it. */
export type Upload = UploadedFile;

/**
 * The scalar type of file arguments. Its values come only from file parts of a multipart request, never from
 * JSON values or literals. It cannot be an output type.
 */
export const Upload: GraphQLScalarType<UploadedFile, never> = new GraphQLScalarType<UploadedFile, never>({
  name: 'Upload',
  description: 'A file sent as a part of a multipart request.',
  specifiedByURL: SPECIFICATION,
  parseValue(value) {
    if (isUploadedFile(value)) return value;
    throw new GraphQLError(
      `Upload must be a file part of a multipart request, mapped to a variable (${SPECIFICATION}); got ${formatValue(value)}`,
    );
  },
  parseLiteral(node: ValueNode) {
    throw new GraphQLError(`Upload must be given as a variable, not as a literal (${kindName(node)})`, {
      nodes: node,
    });
  },
  serialize() {
    throw new GraphQLError(
      'Upload is an input type and cannot be returned; return a URL or an object type instead',
    );
  },
});

function kindName(node: ValueNode): string {
  return node.kind === Kind.NULL ? 'null' : node.kind.replace(/Value$/, '').toLowerCase();
}

/**
 * Creates the value for resolvers: plain data, so that code may copy it or write each of its members back. Its functions
 * are closures, so that `const { createReadStream } = await file` works. It is not a promise, so that `file.filename`
 * works too.
 */
function createUploadedFile(
  info: UploadedFileInfo,
  spool: Spool,
  { saveTo, cut }: { saveTo: UploadedFile['saveTo']; cut(error: Error): void },
): UploadedFile {
  const arrayBuffer = (): Promise<ArrayBuffer> => handled(readAll(spool));
  const text = (): Promise<string> => handled(arrayBuffer().then((all) => new TextDecoder().decode(all)));
  const { filename, mimetype } = info;
  const file: UploadedFile = {
    ...info,
    size: undefined,
    createReadStream: (options) => readSpool(spool, options, cut),
    stream: () => Readable.toWeb(readSpool(spool)) as ReturnType<UploadedFile['stream']>,
    text,
    json: () => handled(text().then((all): unknown => JSON.parse(all))),
    bytes: () => handled(arrayBuffer().then((all) => new Uint8Array(all))),
    arrayBuffer,
    toFile: () =>
      handled(arrayBuffer().then((all) => new File([new Uint8Array(all)], filename, { type: mimetype }))),
    saveTo,
    toJSON: () => ({ ...info, size: spool.complete ? spool.size : undefined }),
  };
  return Object.defineProperty(file, UPLOADED, { value: () => spool.hold(), writable: true });
}

function isUploadedFile(value: unknown): value is UploadedFile {
  return typeof value === 'object' && value !== null && Object.hasOwn(value, UPLOADED);
}

/** An aborted request must not turn a promise that is not yet awaited into an unhandled rejection. */
function handled<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => {});
  return promise;
}

async function save(spool: Spool, path: string | URL): Promise<number> {
  const handle = await open(path, 'wx');
  try {
    await pipeline(readSpool(spool, { highWaterMark: 256 * 1024 }), handle.createWriteStream());
    return spool.size;
  } catch (error) {
    await unlink(path);
    throw error;
  }
}

/**
 * Makes a filename from the client safe for display, storage and headers. multer has decoded the `%0D%0A` of
 * browsers to line breaks, which would be header injection in a Content-Disposition.
 */
export function cleanFilename(raw: string): string {
  const text = raw.replace(UNSAFE, '');
  const base = text.slice(Math.max(text.lastIndexOf('/'), text.lastIndexOf('\\')) + 1).trim();
  if (base === '' || base === '.' || base === '..') return 'unnamed';
  return Buffer.byteLength(base) <= MAX_FILENAME_BYTES ? base : shorten(base);
}

/** Cuts to 255 bytes of UTF-8, between characters, and keeps a short extension. */
function shorten(name: string): string {
  const dot = name.lastIndexOf('.');
  const extension = dot > 0 && name.length - dot <= MAX_EXTENSION_LENGTH ? name.slice(dot) : '';
  let room = MAX_FILENAME_BYTES - Buffer.byteLength(extension);
  let stem = '';
  for (const character of name) {
    room -= Buffer.byteLength(character);
    if (room < 0) break;
    stem += character;
  }
  return stem + extension;
}

const NO_SPACE = new Set(['ENOSPC', 'EDQUOT', 'EFBIG']);

/**
 * Converts an error of the temporary file or of the parser's files. Clients get 507 for a full disk, and 503 if
 * descriptors or memory ran out. The operator gets the cause. Any other failure is unexpected.
 */
export function storageError(cause: Error): Error {
  if (NO_SPACE.has(codeOf(cause) ?? '')) {
    return new HttpError(507, 'There is no space for the upload', { code: 'NO_SPACE', cause });
  }
  if (!isResourceError(cause)) return cause;
  return new HttpError(503, 'The server cannot store the upload now; try again', {
    headers: { 'retry-after': '1' },
    code: 'STORAGE_UNAVAILABLE',
    cause,
  });
}
