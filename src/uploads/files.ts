import { File } from 'node:buffer';
import { open, unlink } from 'node:fs/promises';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { UploadedFile, UploadedFileInfo } from '../../types/uploads.ts';
import { UPLOADED } from '../http/body.ts';
import { formatValue } from '../options/rules.ts';
import { FIRST_BYTES, typeOf } from './first-bytes.ts';
import { readAll, readSpool, type Spool } from './spool.ts';

/** The request of a file, which gets the errors that the application has dropped. */
interface FileOwner {
  /** Resolves when the response has closed. */
  readonly closed: Promise<void>;
  report(error: Error): void;
}

/**
 * Creates the value for resolvers and handlers: plain data, so that code may copy it or write each of its members back. Its
 * functions are closures, so that `const { createReadStream } = await file` works. It is not a promise, so that
 * `file.filename` works too.
 */
export function createUploadedFile(info: UploadedFileInfo, spool: Spool, owner: FileOwner): UploadedFile {
  const arrayBuffer = (): Promise<ArrayBuffer> => handled(readAll(spool));
  const text = (): Promise<string> => handled(arrayBuffer().then((all) => new TextDecoder().decode(all)));
  const { filename, mimetype, encoding, fieldName } = info;
  /** Reports a stream that nobody watches, such as one of `pipe`, and that the end of the response has cut off. */
  const onCut = (error: Error): void => {
    if (spool.isReleased) owner.report(failed('createReadStream', info, error));
  };
  const file: UploadedFile = {
    filename,
    mimetype,
    encoding,
    fieldName,
    size: undefined,
    createReadStream: (options) => readSpool(spool, options, onCut),
    stream: () => Readable.toWeb(readSpool(spool)) as ReturnType<UploadedFile['stream']>,
    text,
    json: () => handled(text().then((all): unknown => JSON.parse(all))),
    bytes: () => handled(arrayBuffer().then((all) => new Uint8Array(all))),
    arrayBuffer,
    toFile: () =>
      handled(arrayBuffer().then((all) => new File([new Uint8Array(all)], filename, { type: mimetype }))),
    type: () => handled(readAll(spool, FIRST_BYTES).then((start) => typeOf(Buffer.from(start)))),
    saveTo: (path) => saveTo(path, info, spool, owner),
    toJSON: () => ({ ...info, size: spool.complete ? spool.size : undefined }),
  };
  return Object.defineProperty(file, UPLOADED, { value: () => spool.hold(), writable: true });
}

/** An aborted request must not turn a promise that is not yet awaited into an unhandled rejection. */
function handled<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => {});
  return promise;
}

const THEN = 'then';

/** The promise of a `saveTo`, which knows whether anybody waits for it. */
class Save extends Promise<number> {
  // The promises that `then` creates are usual ones.
  static override readonly [Symbol.species] = Promise;
  isObserved = false;

  /** Called by `await`, `catch` and `finally` too. */
  override [THEN]<A = number, B = never>(
    onResolved?: ((value: number) => A | PromiseLike<A>) | null,
    onRejected?: ((reason: unknown) => B | PromiseLike<B>) | null,
  ): Promise<A | B> {
    this.isObserved = true;
    return super[THEN](onResolved, onRejected);
  }
}

/** Writes a copy, also beyond the end of the response. Reports a failure that the application would never see. */
function saveTo(path: string | URL, info: UploadedFileInfo, spool: Spool, owner: FileOwner): Promise<number> {
  const saved = save(spool, path).finally(spool.hold());
  const saving = new Save((resolve) => resolve(saved));
  void Promise.prototype.then.call(saving, undefined, async (cause: Error) => {
    await owner.closed;
    if (!saving.isObserved) owner.report(failed('saveTo', info, cause));
  });
  return saving;
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

const failed = (what: string, info: UploadedFileInfo, cause: Error): Error =>
  new Error(`${what} of ${describe(info)} failed: ${cause.message}`, { cause });

/** Users know the filename, developers the name of the part. */
export const describe = ({ filename, fieldName }: UploadedFileInfo): string =>
  `${formatValue(filename)} (part ${formatValue(fieldName)})`;

// Control characters, lone surrogates, line and paragraph separators, and bidirectional controls, which show
// `gnp.exe` as `exe.png`.
const UNSAFE = /[\p{Cc}\p{Cs}\u2028\u2029\u200e\u200f\u061c\u202a-\u202e\u2066-\u2069]/gu;
const MAX_FILENAME_BYTES = 255;
const MAX_EXTENSION_LENGTH = 32;

/**
 * Makes a filename from the client safe for display, storage and headers. It may contain line breaks, which would be header
 * injection in a Content-Disposition: browsers encode them, and the parser decodes them.
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
