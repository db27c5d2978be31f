import { GraphQLError } from 'graphql';
import type { UploadedFile, UploadedFileInfo } from '../../../types/uploads.ts';
import { HttpError } from '../../http/reply/http-error.ts';
import { formatValue } from '../../options/format-value.ts';
import { assertSync } from '../../options/resolve-options.ts';
import { UPLOAD_OPTIONS } from '../../options/scopes.ts';
import type { FilePart } from '../form/form.ts';
import { Spool, type SpoolSettings } from './spool.ts';
import { storageError } from './storage-error.ts';
import { cleanFilename, createUploadedFile } from './upload.ts';

interface StorageSettings extends SpoolSettings {
  readonly maxFileSize: number;
  readonly accept: (file: UploadedFileInfo) => boolean;
}

/** The files of one request, from their part headers to the end of the response. */
export class StoredFiles {
  readonly #settings: StorageSettings;
  readonly #failed: (error: Error) => void;
  readonly #spools = new Map<string, Spool>();
  readonly #stored: Promise<void>[] = [];
  #released = false;

  /** `failed` is called as soon as a file cannot be stored or is too large. */
  constructor(settings: StorageSettings, failed: (error: Error) => void) {
    this.#settings = settings;
    this.#failed = failed;
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
    const stored = fillSpool(spool, part, this.#settings.maxFileSize);
    stored.catch(this.#failed);
    this.#stored.push(stored);
    return createUploadedFile(info, spool);
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

  /** Frees memory and descriptors, also those of files that arrive later. */
  release(): void {
    this.#released = true;
    for (const spool of this.#spools.values()) spool.release();
  }
}

/** Resolves when the whole content of a part is in the spool. */
function fillSpool(spool: Spool, part: FilePart, maxFileSize: number): Promise<void> {
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
      else if (spool.size + chunk.length > maxFileSize) refuse(fileTooLarge(part, maxFileSize));
      else if (!spool.write(chunk)) stream.pause();
    });
    stream.on('end', () => {
      spool.end(() => {
        if (spool.error === undefined) resolve();
        else reject(storageError(spool.error));
      });
    });
  });
}

function infoOf({ name, filename, mimetype, encoding }: FilePart): UploadedFileInfo {
  return { filename: cleanFilename(filename), mimetype, encoding, fieldName: name };
}

const notAccepted = (info: UploadedFileInfo): HttpError =>
  new HttpError(415, `${describe(info)} has a type that is not accepted`, { code: 'FILE_NOT_ACCEPTED' });

const fileTooLarge = (part: FilePart, maxFileSize: number): HttpError =>
  new HttpError(413, `${describe(infoOf(part))} is larger than ${maxFileSize} bytes`, {
    code: 'FILE_TOO_LARGE',
  });

/** Users know the filename, developers the name of the part. */
const describe = ({ filename, fieldName }: UploadedFileInfo): string =>
  `The file ${formatValue(filename)} (part ${formatValue(fieldName)})`;

/**
 * Converts an error for readers. With the option `streaming`, a file may be refused while resolvers read it.
 */
function readerError(error: Error): Error {
  if (!(error instanceof HttpError)) return error;
  const extensions = { code: error.code, http: { status: error.status } };
  return new GraphQLError(error.message, { extensions });
}
