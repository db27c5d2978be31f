import { File } from 'node:buffer';
import { open, unlink } from 'node:fs/promises';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { UploadedFile, UploadedFileInfo } from '../../../types/uploads.ts';
import type { Spool } from './spool.ts';
import { readAll, readSpool } from './spool-reader.ts';

/**
 * Marks the files of requests. JSON has no symbols, so no client can forge the mark. It is a registered symbol, so that files
 * of the CommonJS build are recognised by the ES build.
 */
const UPLOADED = Symbol.for('espalier.uploaded');

/**
 * Creates the value for resolvers. Its members are closures, so that `const { createReadStream } = await file` works. It is not
 * a promise, so that `file.filename` works too.
 */
export function createUploadedFile(info: UploadedFileInfo, spool: Spool): UploadedFile {
  const bytes = (): Promise<Buffer<ArrayBuffer>> => handled(readAll(spool));
  const text = (): Promise<string> => handled(bytes().then((all) => new TextDecoder().decode(all)));
  const { filename, mimetype } = info;
  const file: UploadedFile = {
    ...info,
    get size() {
      return spool.complete ? spool.size : undefined;
    },
    createReadStream: (options) => readSpool(spool, options),
    stream: () => Readable.toWeb(readSpool(spool)) as ReturnType<UploadedFile['stream']>,
    text,
    json: () => handled(text().then((all): unknown => JSON.parse(all))),
    bytes: () => handled(bytes().then((all) => new Uint8Array(all.buffer))),
    arrayBuffer: () => handled(bytes().then((all) => all.buffer)),
    toFile: () => handled(bytes().then((all) => new File([all], filename, { type: mimetype }))),
    saveTo: (path) => handled(save(spool, path)),
    toJSON: () => ({ ...info, size: file.size }),
  };
  return Object.defineProperty(file, UPLOADED, { value: true });
}

/** Whether a value is a file of a request. */
export function isUploadedFile(value: unknown): value is UploadedFile {
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
