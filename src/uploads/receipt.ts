import { accessSync, constants } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import { setImmediate } from 'node:timers';
import type { UploadOptions } from '../../types/uploads.ts';
import { createChannel, type EventChannel, Observed } from '../diagnostics/channels.ts';
import { debug } from '../diagnostics/logging.ts';
import { registerGauge } from '../diagnostics/stats.ts';
import { drainRequest } from '../http/body.ts';
import { HttpError, toError } from '../http/reply.ts';
import { createDeadlines } from '../http/timers.ts';
import { bytes, type Rules, rule, type WithDefaults } from '../options/rules.ts';
import { isString } from '../options/values.ts';
import { type StorageSettings, StoredFiles } from './files.ts';
import { acceptRule } from './first-bytes.ts';
import {
  type BodySettings,
  clientAborted,
  createMulterParser,
  Form,
  type FormLimits,
  openForm,
  type Part,
} from './form.ts';

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

/** A request with its response. */
export interface Exchange {
  readonly req: IncomingMessage;
  readonly res: ServerResponse;
}

/**
 * The receipt of one multipart body: its parts, its files, and how it ends. All files are released when the response
 * closes.
 */
export class Receipt {
  readonly form: Form = new Form();
  readonly files: StoredFiles;
  readonly #exchange: Exchange;
  readonly #settings: ReceiptSettings;
  readonly #report: (error: unknown) => void;
  #observed: ObservedUpload | undefined;
  #isReceiving = true;

  /** `report` is called with an error of the storage that the client does not see. */
  constructor(exchange: Exchange, settings: ReceiptSettings, report: (error: unknown) => void) {
    this.#exchange = exchange;
    this.#settings = settings;
    this.#report = report;
    this.files = new StoredFiles(settings, { failed: (error) => this.form.fail(error), report });
    if (uploadChannel.hasSubscribers) {
      this.#observed = new ObservedUpload(exchange.req);
      uploadChannel.publish(this.#observed);
    }
    exchange.res.once('close', () => this.#onClose());
  }

  /**
   * Parses the body, whose parts `read` takes. Rejects with the first error, as soon as it is detected, even while the
   * client is sending; the rest of the body is drained. The errors of clients are HttpErrors.
   */
  async receive<T>(read: () => Promise<T>): Promise<T> {
    const { req, res } = this.#exchange;
    try {
      openForm(this.form, req, res, this.#settings);
      return await read();
    } catch (error) {
      throw this.stop(error);
    }
  }

  /** Takes all parts that are left. Resolves when the form has ended and every file is stored. */
  async complete(take: (part: Part) => void): Promise<void> {
    const { form } = this;
    for (let part = await form.next(); part !== undefined; part = await form.next()) take(part);
    await this.files.stored();
    this.#end(undefined);
  }

  /** Ends the receipt with the first error of the form, or with the given one. */
  stop(reason: unknown): Error {
    const { req, res } = this.#exchange;
    const error = this.form.fail(toError(reason));
    if (error instanceof HttpError && error.cause !== undefined) this.#report(error.cause);
    debug.uploads('%s%s', error.message, HttpError.is(error) ? error.option : '');
    this.files.fail(error);
    drainRequest(req, res);
    this.#end(error);
    return error;
  }

  #end(error: Error | undefined): void {
    this.#isReceiving = false;
    this.#observed?.end({ ...this.files.total(), error });
  }

  #onClose(): void {
    const { req, res } = this.#exchange;
    if (res.writableFinished) {
      // The response of a streaming upload may precede the end of a body that has arrived in full.
      setImmediate(() => this.#isReceiving && !req.complete && this.form.fail(clientAborted()));
    } else if (this.#isReceiving) this.form.fail(clientAborted());
    this.files.release();
  }
}

/** The checked options of a receiver, and the state that all of its requests share. */
export interface ReceiptSettings extends StorageSettings, BodySettings {}

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
interface ReceiverSettings extends FormLimits, Pick<StorageSettings, 'readerError'> {
  /** Milliseconds. */
  readonly bodyTimeout: number;
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
    maxRequestBytes: options.maxRequestBytes ?? Math.max(100 * MIB, maxFileBytes + 2 * MIB),
    scope: receiver.scope,
    budget,
    memoryBytesPerFile: memoryBytes * FILE_SHARE,
    deadlines: createDeadlines(receiver.bodyTimeout),
    createParser: createMulterParser(receiver),
    readerError: receiver.readerError,
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
