import type { File } from 'node:buffer';
import type { Readable } from 'node:stream';
import type { ReadableStream } from 'node:stream/web';

/** Limits and ways of receiving uploads. Every limit is per request unless it says otherwise, and finite. */
export interface UploadOptions {
  /**
   * Bytes of one file; a file of exactly this size passes, one byte more is answered 413 at once.
   * @default 26_214_400 (25 MiB)
   */
  maxFileSize?: number | undefined;
  /**
   * Files in one request, mapped or not; more are answered 413, already from the `map`. A request may name five paths
   * per allowed file.
   * @default 20
   */
  maxFiles?: number | undefined;
  /**
   * Bytes of the whole body; a larger Content-Length is answered 413 with nothing read.
   * @default the larger of 104_857_600 (100 MiB) and `maxFileSize` + 2 MiB
   */
  maxRequestSize?: number | undefined;
  /**
   * Bytes of one text part (`operations`, `map`); more is answered 413.
   * @default 1_048_576 (1 MiB)
   */
  maxFieldSize?: number | undefined;
  /**
   * Bytes of one file kept in memory; a larger file goes to a temporary file that has no name.
   * @default 262_144 (256 KiB)
   */
  memoryPerFile?: number | undefined;
  /**
   * Bytes of all files kept in memory at one time by this handler, over all its requests; what comes beyond goes to
   * temporary files.
   * @default 67_108_864 (64 MiB)
   */
  memoryTotal?: number | undefined;
  /**
   * Directory of the temporary files.
   * @default os.tmpdir()
   */
  tempDir?: string | undefined;
  /**
   * `false`: the whole body is received before execution, `size` is known and a broken request runs no resolver.
   * `true`: execution starts when the header of every mapped file has come; a limit then fails the reader of that file.
   * @default false
   */
  streaming?: boolean | undefined;
  /**
   * Looks at each mapped file before its content is received; `false` is answered 415. The type is what the client says.
   * @default every file is accepted
   */
  accept?: ((file: UploadedFileInfo) => boolean) | undefined;
}

/** What a part's header says about a file. All of it is the client's word. */
export interface UploadedFileInfo {
  /** Base name: directories, control and bidirectional characters removed, at most 255 bytes; never empty, `.` or `..`. */
  readonly filename: string;
  /** Media type without parameters, as declared. */
  readonly mimetype: string;
  /** Content-Transfer-Encoding, as declared; `7bit` when absent. The content is never decoded. */
  readonly encoding: string;
  /** Name of the part, the key of `map`. */
  readonly fieldName: string;
}

/** Options of `createReadStream`. */
export interface UploadReadOptions {
  /** Gives strings of this encoding instead of Buffers. */
  encoding?: BufferEncoding | undefined;
  /**
   * Bytes buffered by the stream.
   * @default 65_536 (64 KiB)
   */
  highWaterMark?: number | undefined;
}

/**
 * An uploaded file as resolvers get it: a plain object, no promise. Readable any number of times, independently,
 * until the response ends.
 */
export interface UploadedFile extends UploadedFileInfo {
  /** Bytes; `undefined` while a streamed file is still arriving. */
  readonly size: number | undefined;
  /** A Node stream from the first byte. */
  createReadStream(options?: UploadReadOptions): Readable;
  /** A web stream from the first byte. */
  stream(): ReadableStream<Uint8Array>;
  /** The content as UTF-8 text. */
  text(): Promise<string>;
  /** The content parsed as JSON. */
  json(): Promise<unknown>;
  /** The content as bytes. */
  bytes(): Promise<Uint8Array<ArrayBuffer>>;
  /** The content as an ArrayBuffer. */
  arrayBuffer(): Promise<ArrayBuffer>;
  /** A WHATWG `File` with the content in memory, for APIs that want one. */
  toFile(): Promise<File>;
  /**
   * Writes the content to a new file and resolves with its size. Fails with `EEXIST` where a file exists; a failed write
   * leaves nothing behind. Choose the path yourself: `filename` is the client's word.
   */
  saveTo(path: string | URL): Promise<number>;
  /** Name, type and size, so that logged variables stay short. */
  toJSON(): UploadedFileInfo & { readonly size: number | undefined };
}
