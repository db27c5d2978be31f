import { File } from 'node:buffer';
import { open, unlink } from 'node:fs/promises';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { UploadedFile, UploadedFileInfo } from '../../types/uploads.ts';
import { UPLOADED } from '../http/body.ts';
import { codeOf, HttpError, isResourceError } from '../http/reply.ts';
import { assertSync, byOption, formatValue, type OptionScope } from '../options/rules.ts';
import { type Accept, FIRST_BYTES, isTypeIn, typeOf } from './first-bytes.ts';
import type { FilePart } from './form.ts';
import { readAll, readSpool, Spool, type SpoolSettings } from './spool.ts';

/** The limits of files, and where they are stored. */
export interface StorageSettings extends SpoolSettings {
  /** The options, for messages. */
  readonly scope: OptionScope;
  readonly maxFileBytes: number;
  readonly accept: Accept;
  /** Converts the error of a refused request for the readers of its files. */
  readonly readerError: (error: HttpError) => Error;
}

/** The files of one request, from their part headers to the end of the response. */
export class StoredFiles {
  readonly #settings: StorageSettings;
  readonly #failed: (error: Error) => void;
  readonly #report: (error: Error) => void;
  readonly #spools: Spool[] = [];
  readonly #stored: Promise<unknown>[] = [];
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
    return this.#spools.length;
  }

  /** Returns the files that have arrived, and their bytes so far. */
  total(): { readonly files: number; readonly bytes: number } {
    let bytes = 0;
    for (const { size } of this.#spools) bytes += size;
    return { files: this.count, bytes };
  }

  /**
   * Begins to store a file and returns the value for resolvers. `elsewhere` is called as soon as the type of the file is
   * accepted; it may store the file in another place, and its result becomes `file.stored`.
   *
   * @throws HttpError 415 when the function `accept` refuses the file.
   */
  store(part: FilePart, elsewhere?: (file: UploadedFile) => unknown): UploadedFile {
    const info = infoOf(part);
    const { accept, scope } = this.#settings;
    if (typeof accept === 'function' && !assertSync(accept(info), scope, 'accept'))
      throw notAccepted(info, `of the type ${formatValue(info.mimetype)} is not accepted`, scope);
    const spool = new Spool(this.#settings);
    if (this.#released) spool.release();
    this.#spools.push(spool);
    const file = createUploadedFile(info, spool, {
      saveTo: (path) => this.#save(info, spool, path),
      cut: (error) => this.#reportCut(info, error),
    });
    const isFilled = fillSpool(spool, part, this.#settings, () => {
      // The application may have frozen the value of a streamed file.
      Reflect.set(file, 'size', spool.size);
    });
    const accepted =
      typeof accept === 'function'
        ? undefined
        : file.type().then((type) => this.#assertType(info, spool, type));
    const stored =
      elsewhere &&
      Promise.resolve(accepted)
        .then(() => elsewhere(file))
        .then((result) => Object.assign(file, { stored: result }));
    for (const step of [isFilled, accepted, stored]) {
      if (step === undefined) continue;
      step.catch(this.#failed);
      this.#stored.push(step);
    }
    return file;
  }

  #assertType(info: UploadedFileInfo, spool: Spool, type: string | undefined): void {
    const { accept, scope, readerError } = this.#settings;
    if (typeof accept === 'function' || isTypeIn(accept, type)) return;
    const found = type === undefined ? 'no known type' : `the type ${formatValue(type)}`;
    const error = notAccepted(info, `has ${found} by its first bytes; accepted: ${accept.join(', ')}`, scope);
    spool.fail(readerError(error));
    throw error;
  }

  /** Resolves when every file is stored. */
  async stored(): Promise<void> {
    await Promise.all(this.#stored);
  }

  /** Fails incomplete files and the resolvers that read them. */
  fail(error: Error): void {
    const reason = error instanceof HttpError ? this.#settings.readerError(error) : error;
    for (const spool of this.#spools) {
      if (!spool.complete) spool.fail(reason);
    }
  }

  /** Frees memory and descriptors, also those of files that arrive later, when `saveTo` has written its files. */
  release(): void {
    this.#released = true;
    for (const spool of this.#spools) spool.release();
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
  { maxFileBytes, scope, readerError }: StorageSettings,
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
      else if (spool.size + chunk.length > maxFileBytes) refuse(fileTooLarge(part, maxFileBytes, scope));
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

const notAccepted = (info: UploadedFileInfo, reason: string, scope: OptionScope): HttpError =>
  new HttpError(415, `${describe(info)} ${reason}`, {
    code: 'FILE_NOT_ACCEPTED',
    option: byOption('accept', scope),
  });

const fileTooLarge = (part: FilePart, maxFileBytes: number, scope: OptionScope): HttpError =>
  new HttpError(413, `${describe(infoOf(part))} is larger than ${maxFileBytes} bytes; send a smaller one`, {
    code: 'FILE_TOO_LARGE',
    option: byOption('maxFileBytes', scope),
  });

const failed = (what: string, info: UploadedFileInfo, cause: Error): Error =>
  new Error(`${what} of ${nameOf(info)} failed: ${cause.message}`, { cause });

const describe = (info: UploadedFileInfo): string => `The file ${nameOf(info)}`;

/** Users know the filename, developers the name of the part. */
const nameOf = ({ filename, fieldName }: UploadedFileInfo): string =>
  `${formatValue(filename)} (part ${formatValue(fieldName)})`;

// Control characters, lone surrogates, line and paragraph separators, and bidirectional controls, which show
// `gnp.exe` as `exe.png`.
const UNSAFE = /[\p{Cc}\p{Cs}\u2028\u2029\u200e\u200f\u061c\u202a-\u202e\u2066-\u2069]/gu;
const MAX_FILENAME_BYTES = 255;
const MAX_EXTENSION_LENGTH = 32;

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
    type: () => handled(readAll(spool, FIRST_BYTES).then((start) => typeOf(Buffer.from(start)))),
    saveTo,
    toJSON: () => ({ ...info, size: spool.complete ? spool.size : undefined }),
  };
  return Object.defineProperty(file, UPLOADED, { value: () => spool.hold(), writable: true });
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
