import type { File } from 'node:buffer';
import type { IncomingMessage } from 'node:http';
import type { Readable, ReadableOptions } from 'node:stream';
import type { ReadableStream } from 'node:stream/web';
import type { ByteSize, MaybePromise, Middleware } from './connect.ts';

/** Options for uploads of `graphqlHTTP`. Every limit is finite and applies to one request unless it says otherwise. */
export interface UploadOptions {
  /**
   * Maximum size of one file, in bytes. One byte more is refused with 413 as soon as it arrives.
   * @default 26_214_400 (25 MiB)
   */
  maxFileBytes?: ByteSize | undefined;
  /**
   * Maximum number of files in one request, mapped or not. More are refused with 413, as soon as the `map`
   * lists them or they arrive. The `map` may list five paths per allowed file.
   * @default 20
   */
  maxFiles?: number | undefined;
  /**
   * Maximum size of the whole body, in bytes. A larger Content-Length is refused with 413 before the body is
   * read.
   * @default the larger of 104_857_600 (100 MiB) and `maxFileBytes` + 2 MiB
   */
  maxRequestBytes?: ByteSize | undefined;
  /**
   * Bytes of all files that this handler keeps in memory at one time, over all requests. One file may use 1/256 of it; a
   * larger one is written to an unlinked temporary file, and so is any file when the rest is used up. 0 keeps none in memory.
   * @default 67_108_864 (64 MiB; 256 KiB for one file)
   */
  memoryBytes?: ByteSize | undefined;
  /**
   * Directory of the temporary files. It must be writable when the handler is created.
   * @default os.tmpdir()
   */
  tempDir?: string | undefined;
  /**
   * `false`: the whole body is received before execution, `size` is known, and a refused request runs no
   * resolver. `true`: execution starts when the header of every mapped file has arrived. If a file exceeds a
   * limit, its readers fail.
   * @default false
   */
  streaming?: boolean | undefined;
  /**
   * The accepted files. A list of media types such as `['image/*']` checks the first bytes of each file, whatever the
   * client declares; a type that first bytes do not tell, such as `text/csv`, throws. A function is called for each file
   * before its content is received, with what the client declares; it must return synchronously. Any other file is refused
   * with 415.
   * @default every file is accepted
   */
  accept?: readonly string[] | ((file: UploadedFileInfo) => boolean) | undefined;
}

/** The description of a file in the header of its part. The client chooses all of it. */
export interface UploadedFileInfo {
  /** Base name without control and bidirectional characters, at most 255 bytes, never empty, `.` or `..`. */
  readonly filename: string;
  /** Media type without parameters, as declared. */
  readonly mimetype: string;
  /** Content-Transfer-Encoding, as declared; `7bit` if absent. The content is not decoded. */
  readonly encoding: string;
  /** Name of the part: its key in `map`, or the name of the field of a form. */
  readonly fieldName: string;
}

/**
 * An uploaded file, as resolvers receive it: a plain object, not a promise. It can be read any number of
 * times until the response ends.
 */
export interface UploadedFile extends UploadedFileInfo {
  /** Size in bytes; `undefined` while a streamed file is still arriving. */
  readonly size: number | undefined;
  /** A Node stream from the first byte. It buffers 64 KiB, unless `highWaterMark` says otherwise. */
  createReadStream(options?: Pick<ReadableOptions, 'encoding' | 'highWaterMark'>): Readable;
  /** A web stream from the first byte. */
  stream(): ReadableStream<Uint8Array>;
  /** The content as UTF-8 text. */
  text(): Promise<string>;
  /** The content parsed as JSON. */
  json(): Promise<unknown>;
  /** The content as bytes: a `Uint8Array<ArrayBuffer>` from TypeScript 5.7 on. */
  bytes(): Promise<ReturnType<typeof Uint8Array.of>>;
  /** The content as an ArrayBuffer. */
  arrayBuffer(): Promise<ArrayBuffer>;
  /** A WHATWG `File` with the content in memory. */
  toFile(): Promise<File>;
  /**
   * The media type by the first bytes, whatever the client declares; `undefined` for text and for types that are not known.
   * Resolves as soon as enough bytes have arrived.
   */
  type(): Promise<string | undefined>;
  /**
   * Writes the content to a new file and resolves with its size in bytes. Rejects with `EEXIST` if the file
   * exists; a failed write is deleted. Do not build the path from `filename`, which the client chooses.
   */
  saveTo(path: string | URL): Promise<number>;
  /** Name, type and size, for short logs of variables. */
  toJSON(): UploadedFileInfo & { readonly size: number | undefined };
}

/**
 * Options of `receiveFiles`. Every limit is finite and applies to one request unless it says otherwise.
 */
export interface ReceiveFilesOptions<Name extends string = string, Stored = unknown>
  extends Omit<UploadOptions, 'streaming'> {
  /**
   * The names of the file fields, each with its maximum number of files: `{ photo: 1, gallery: 8 }`. A file under another
   * name is refused with 400, one too many with 413. `{}` accepts no files.
   * @default any name, `maxFiles` files in all
   */
  files?: Readonly<Record<Name, number>> | undefined;
  /**
   * Maximum size of the text of one field, in bytes. All texts of a form, at most 1000, may have 16 times as much. More is
   * refused with 413.
   * @default 65_536 (64 KiB)
   */
  maxFieldBytes?: ByteSize | undefined;
  /**
   * `'spool'`: small files are kept in memory, larger ones in unlinked temporary files. `'memory'`: never on disk; when all
   * files together need more than `memoryBytes`, the request gets 503. A function is called for each file while it arrives,
   * stores its stream elsewhere, and returns what the handler needs, as `file.stored`.
   * @default 'spool'
   */
  storage?: 'spool' | 'memory' | ((file: UploadedFile) => MaybePromise<Stored>) | undefined;
}

/** A file of a form. */
export interface ReceivedFile<Stored = unknown> extends UploadedFile {
  /** What the function `storage` has returned. */
  readonly stored?: Stored;
}

/** The text fields of a form by name: a list if a name was sent more than once. The object has no prototype. */
export type FormBody = Record<string, string | string[]>;

/** A form that was received. */
export interface ReceivedForm<Name extends string = string, Stored = unknown> {
  /** The files by name, in the order of their arrival. Each name of the option `files` has a list. */
  readonly files: Readonly<Record<Name, readonly ReceivedFile<Stored>[]>>;
  readonly body: Readonly<FormBody>;
}

/**
 * What `receiveFiles` returns: a middleware that sets `req.files` and `req.body`. For a form that is refused it calls
 * `next(error)`, with a `status`, a `message` for the client and a `code` such as `FILE_TOO_LARGE`.
 */
export interface FormReceiver<Name extends string = string, Stored = unknown> extends Middleware {
  /**
   * The same as `req.files` and `req.body`, with their types.
   *
   * @throws TypeError if this middleware has not received the request.
   */
  form(req: IncomingMessage): ReceivedForm<Name, Stored>;
}
