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
import {
  bytes,
  count,
  type OptionScope,
  type Rules,
  rule,
  type WithDefaults,
  wrongOption,
} from '../options/rules.ts';
import { isString } from '../options/values.ts';
import { type StorageSettings, StoredFiles } from './files.ts';
import { acceptRule } from './first-bytes.ts';
import { type BodySettings, clientAborted, createMulterParser, Form, openForm } from './form.ts';

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

/** Publishes a request; undefined without subscribers. */
function observeUpload(req: IncomingMessage): ObservedUpload | undefined {
  if (!uploadChannel.hasSubscribers) return undefined;
  const observed = new ObservedUpload(req);
  uploadChannel.publish(observed);
  return observed;
}

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
  readonly #observed: ObservedUpload | undefined;
  #isReceiving = true;

  /** `report` is called with an error of the storage that the client does not see. */
  constructor(exchange: Exchange, settings: ReceiptSettings, report: (error: unknown) => void) {
    this.#exchange = exchange;
    this.#settings = settings;
    this.#report = report;
    this.files = new StoredFiles(settings, { failed: (error) => this.form.fail(error), report });
    this.#observed = observeUpload(exchange.req);
    exchange.res.once('close', () => this.#onClose());
  }

  /**
   * Starts to parse the body.
   *
   * @throws HttpError 400, 413 and 415 if the headers of the request show an error.
   */
  open(): void {
    const { req, res } = this.#exchange;
    openForm(this.form, req, res, this.#settings);
  }

  /** Ends the receipt of a body that has arrived, and whose files are stored. */
  complete(): void {
    this.#end(undefined);
  }

  /** Ends the receipt with the first error of the form, or with the given one, and drains the rest of the body. */
  stop(reason: unknown): Error {
    const { req, res } = this.#exchange;
    const error = this.form.fail(toError(reason));
    if (error instanceof HttpError && error.cause !== undefined) this.#report(error.cause);
    debug.uploads('%s', error.message);
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

type ReceiptOptions = WithDefaults<Omit<UploadOptions, 'streaming'>>;

/** The rules of the options that all receivers have. */
export const RECEIPT_RULES: Rules<ReceiptOptions> = {
  maxFileBytes: bytes(25 * MIB, { from: 0 }),
  maxFiles: count(20),
  maxRequestBytes: bytes(0, { from: 0 }),
  memoryBytes: bytes(64 * MIB, { from: 0 }),
  tempDir: rule(tmpdir(), isString, 'the path of a directory'),
  accept: acceptRule,
};

/** What each kind of receiver limits in its own way. */
interface ReceiptLimits {
  /** Milliseconds. */
  readonly bodyTimeout: number;
  readonly maxFields: number;
  readonly maxFieldBytes: number;
  /** The option that sets `maxFieldBytes`, for messages. */
  readonly fieldOption: string;
}

/** Completes checked options, once per receiver. */
export function receiptSettings(
  scope: OptionScope,
  given: Pick<UploadOptions, 'maxRequestBytes' | 'tempDir'>,
  options: ReceiptOptions & ReceiptLimits,
  readerError: StorageSettings['readerError'],
): ReceiptSettings & ReceiptOptions {
  if (given.tempDir !== undefined) checkDirectory(scope, given.tempDir);
  const { memoryBytes } = options;
  const budget = { left: memoryBytes };
  registerGauge(budget, {
    kind: 'uploads',
    read: () => ({ bytes: memoryBytes - budget.left, maxBytes: memoryBytes }),
  });
  return {
    ...options,
    maxRequestBytes:
      given.maxRequestBytes === undefined
        ? Math.max(100 * MIB, options.maxFileBytes + 2 * MIB)
        : options.maxRequestBytes,
    scope,
    budget,
    memoryBytesPerFile: memoryBytes * FILE_SHARE,
    deadlines: createDeadlines(options.bodyTimeout),
    createParser: createMulterParser({ ...options, scope }),
    readerError,
  };
}

/** Checks that a path is a writable directory. The trailing slash makes the check fail for a file. */
function checkDirectory(scope: OptionScope, path: string): void {
  try {
    accessSync(`${path}/`, constants.W_OK | constants.X_OK);
  } catch {
    throw wrongOption(scope, 'tempDir', path, 'a writable directory');
  }
}
