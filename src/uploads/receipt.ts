import { AsyncResource } from 'node:async_hooks';
import { accessSync, constants } from 'node:fs';
import type { IncomingMessage } from 'node:http';
import { tmpdir } from 'node:os';
import { setImmediate } from 'node:timers';
import type { UploadedFile, UploadedFileInfo, UploadOptions } from '../../types/uploads.ts';
import { createChannel, type EventChannel, Observed } from '../diagnostics/channels.ts';
import { debug } from '../diagnostics/logging.ts';
import { registerGauge } from '../diagnostics/stats.ts';
import { drainRequest } from '../http/body.ts';
import { codeOf, HttpError, isResourceError, toError } from '../http/reply.ts';
import { createDeadlines } from '../http/timers.ts';
import {
  assertSync,
  byOption,
  bytes,
  formatValue,
  type Rules,
  rule,
  type WithDefaults,
} from '../options/rules.ts';
import { isString } from '../options/values.ts';
import { cleanFilename, createUploadedFile, describe } from './files.ts';
import { type Accept, acceptRule, isTypeIn } from './first-bytes.ts';
import {
  clientAborted,
  createMulterParser,
  type Exchange,
  type FilePart,
  type FormSettings,
  type Part,
  readForm,
} from './form.ts';
import { Spool, type SpoolSettings } from './spool.ts';

/** The end of the receipt of a multipart request. */
interface UploadResult {
  /** Files and bytes that were stored, also of a request that failed. */
  readonly files: number;
  readonly bytes: number;
  /** The reason why the request was refused or aborted. */
  readonly error: Error | undefined;
}

/** Published when a multipart request arrives. Subscribers may observe how its receipt ends. */
export class ObservedUpload extends Observed<UploadResult> {
  readonly req: IncomingMessage;

  constructor(req: IncomingMessage) {
    super();
    this.req = req;
  }
}

const uploadChannel: EventChannel<ObservedUpload> = createChannel('uploads:request');

/**
 * The receipt of one multipart body: its parts, its files, and how it ends. All files are released when the response
 * closes.
 */
export class Receipt {
  readonly #exchange: Exchange;
  readonly #settings: ReceiptSettings;
  readonly #report: (error: Error) => void;
  readonly #spools: Spool[] = [];
  readonly #stored: Promise<unknown>[] = [];
  readonly #closed: Promise<void>;
  #isClosed = false;
  #isReceiving = true;
  #observed: ObservedUpload | undefined;
  #stop: () => void = () => {};
  #reject: (error: Error) => void = () => {};

  /** `report` is called with an error that neither the client nor the application sees. */
  constructor(exchange: Exchange, settings: ReceiptSettings, report: (error: Error) => void) {
    this.#exchange = exchange;
    this.#settings = settings;
    this.#report = report;
    if (uploadChannel.hasSubscribers) {
      this.#observed = new ObservedUpload(exchange.req);
      uploadChannel.publish(this.#observed);
    }
    this.#closed = new Promise((resolve) => {
      const onClose = (): void => {
        this.#onClose();
        resolve();
      };
      // The responses of serverless adapters finish and never close.
      exchange.res.once('finish', onClose).once('close', onClose);
    });
  }

  /**
   * Calls `take` with each part as soon as its header has arrived, and `end` after the last one, in the asynchronous context
   * of the caller. Resolves when every file is stored. Rejects with the first error immediately, even while the client is
   * sending; the rest of the body is drained. The errors of clients are HttpErrors.
   */
  receive(take: (part: Part) => void, end: () => void): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#reject = reject;
      const caller = new AsyncResource('espalier.upload');
      const attempt = (step: () => void): void => {
        if (!this.#isReceiving) return;
        try {
          caller.runInAsyncScope(step);
        } catch (error) {
          this.#fail(error);
        }
      };
      const finish = (): void => {
        end();
        Promise.all(this.#stored).then(
          () => {
            this.#end(undefined);
            resolve();
          },
          (error: unknown) => this.#fail(error),
        );
      };
      attempt(() => {
        this.#stop = readForm(this.#exchange, this.#settings, {
          take: (read) => attempt(() => take(read())),
          end: () => attempt(finish),
          fail: (error) => this.#fail(error),
        });
      });
    });
  }

  /**
   * Begins to store a file and returns the value for the application. `elsewhere` is called as soon as the type of the file
   * is accepted; it may store the file in another place, and its result becomes `file.stored`.
   *
   * @throws HttpError 415 when the function `accept` refuses the file.
   */
  store(part: FilePart, elsewhere?: (file: UploadedFile) => unknown): UploadedFile {
    const { name, filename, mimetype, encoding } = part;
    const info = { filename: cleanFilename(filename), mimetype, encoding, fieldName: name };
    const { accept, scope } = this.#settings;
    if (typeof accept === 'function' && !assertSync(accept(info), scope, 'accept'))
      throw this.#notAccepted(info, `of the type ${formatValue(mimetype)} is not accepted`);
    const spool = new Spool(this.#settings);
    if (this.#isClosed) spool.release();
    this.#spools.push(spool);
    const file = createUploadedFile(info, spool, { closed: this.#closed, report: this.#report });
    const stored = Promise.all([this.#fill(spool, part, file), this.#handOver(spool, file, elsewhere)]);
    stored.catch((error: unknown) => this.#fail(error));
    this.#stored.push(stored);
    return file;
  }

  /** Resolves when the whole content of a part is in the spool. */
  #fill(spool: Spool, { stream }: FilePart, file: UploadedFile): Promise<void> {
    spool.onDrain = () => void stream.resume();
    return new Promise((resolve) => {
      stream.on('data', (chunk: Buffer) => {
        if (spool.error !== undefined) this.#fail(spool.error);
        else if (spool.size + chunk.length > this.#settings.maxFileBytes) this.#fail(this.#tooLarge(file));
        else if (!spool.write(chunk)) stream.pause();
      });
      stream.on('end', () => {
        // The application may have frozen the value of a streamed file.
        Reflect.set(file, 'size', spool.size);
        resolve(spool.end());
      });
    });
  }

  /** Checks the type of a file, and passes it to the function that stores it in another place. */
  async #handOver(
    spool: Spool,
    file: UploadedFile,
    elsewhere?: (file: UploadedFile) => unknown,
  ): Promise<void> {
    const { accept, readerError } = this.#settings;
    if (typeof accept !== 'function') {
      const type = await file.type();
      if (!isTypeIn(accept, type)) {
        const found = type === undefined ? 'no known type' : `the type ${formatValue(type)}`;
        const error = this.#notAccepted(
          file,
          `has ${found} by its first bytes; accepted: ${accept.join(', ')}`,
        );
        // Also if a copy of the whole file is being saved.
        spool.fail(readerError(error));
        throw error;
      }
    }
    if (elsewhere !== undefined) Object.assign(file, { stored: await elsewhere(file) });
  }

  #notAccepted(info: UploadedFileInfo, reason: string): HttpError {
    return new HttpError(415, `The file ${describe(info)} ${reason}`, {
      code: 'FILE_NOT_ACCEPTED',
      option: byOption('accept', this.#settings.scope),
    });
  }

  #tooLarge(info: UploadedFileInfo): HttpError {
    const { maxFileBytes, scope } = this.#settings;
    const message = `The file ${describe(info)} is larger than ${maxFileBytes} bytes; send a smaller one`;
    return new HttpError(413, message, {
      code: 'FILE_TOO_LARGE',
      option: byOption('maxFileBytes', scope),
    });
  }

  /** Ends the receipt with its first error, which the readers of its files get as well. */
  #fail(reason: unknown): void {
    if (!this.#isReceiving) return;
    const { req, res } = this.#exchange;
    const error = storageError(toError(reason));
    this.#stop();
    this.#end(error);
    if (HttpError.is(error) && error.cause !== undefined) this.#report(toError(error.cause));
    debug.uploads('%s%s', error.message, HttpError.is(error) ? error.option : '');
    const shown = HttpError.is(error) ? this.#settings.readerError(error) : error;
    for (const spool of this.#spools) if (!spool.isKept) spool.fail(shown);
    drainRequest(req, res);
    this.#reject(error);
  }

  #end(error: Error | undefined): void {
    this.#isReceiving = false;
    const bytes = this.#spools.reduce((sum, { size }) => sum + size, 0);
    this.#observed?.end({ files: this.#spools.length, bytes, error });
  }

  #onClose(): void {
    const { req, res } = this.#exchange;
    if (this.#isClosed) return;
    this.#isClosed = true;
    if (!res.writableFinished) this.#fail(clientAborted());
    // The response of a streaming upload may precede the end of a body that has arrived in full.
    else if (this.#isReceiving) setImmediate(() => !req.complete && this.#fail(clientAborted()));
    for (const spool of this.#spools) spool.release();
  }
}

const NO_SPACE = new Set(['ENOSPC', 'EDQUOT', 'EFBIG']);

/**
 * Converts an error of a store. Clients get 507 for a full disk, and 503 if descriptors or memory ran out. The operator gets
 * the cause. Any other failure is unexpected.
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

/** The checked options of a receiver, and the state that all of its requests share. */
export interface ReceiptSettings extends FormSettings, SpoolSettings {
  readonly maxFileBytes: number;
  readonly accept: Accept;
  /** Converts the error of a refused request for the readers of its files. */
  readonly readerError: (error: HttpError) => Error;
}

const MIB = 1024 * 1024;
/** The share of `memoryBytes` that one file may use before it is written to disk. */
const FILE_SHARE = 1 / 256;

type CommonOptions = Omit<UploadOptions, 'streaming' | 'maxFiles' | 'maxRequestBytes'>;

interface ReceiptOptions extends WithDefaults<CommonOptions> {
  readonly maxRequestBytes: number | undefined;
}

/** The rules of the options that all receivers have. */
export const RECEIPT_RULES: Rules<ReceiptOptions> = {
  maxFileBytes: bytes(25 * MIB, { from: 0 }),
  maxRequestBytes: bytes(undefined, { from: 0 }),
  memoryBytes: bytes(64 * MIB, { from: 0 }),
  tempDir: rule(tmpdir(), isWritableDirectory, 'a writable directory'),
  accept: acceptRule,
};

/** What each kind of receiver decides in its own way. */
interface ReceiverSettings
  extends Pick<FormSettings, 'scope' | 'maxFiles' | 'maxFields' | 'maxFieldBytes' | 'fieldOption'> {
  /** Milliseconds. */
  readonly bodyTimeout: number;
  readonly readerError: ReceiptSettings['readerError'];
}

/** Completes checked options, once per receiver. */
export function receiptSettings(options: ReceiptOptions, receiver: ReceiverSettings): ReceiptSettings {
  const { maxFileBytes, memoryBytes } = options;
  const budget = { left: memoryBytes };
  registerGauge(budget, {
    kind: 'uploads',
    read: () => ({ bytes: memoryBytes - budget.left, maxBytes: memoryBytes }),
  });
  return {
    ...options,
    ...receiver,
    maxRequestBytes: options.maxRequestBytes ?? Math.max(100 * MIB, maxFileBytes + 2 * MIB),
    budget,
    memoryBytesPerFile: memoryBytes * FILE_SHARE,
    deadlines: createDeadlines(receiver.bodyTimeout),
    createParser: createMulterParser(receiver),
  };
}

/** The trailing slash makes the check fail for a file. */
function isWritableDirectory(path: unknown): boolean {
  try {
    accessSync(`${path}/`, constants.W_OK | constants.X_OK);
    return isString(path);
  } catch {
    return false;
  }
}
