import type { IncomingMessage, ServerResponse } from 'node:http';
import type { ConnectRequest, MaybePromise, NextFunction } from '../../types/connect.ts';
import type {
  FormBody,
  FormReceiver,
  ReceivedFile,
  ReceivedForm,
  ReceiveFilesOptions,
  RefusedForm,
} from '../../types/uploads.ts';
import { createWarningLog } from '../diagnostics/logging.ts';
import {
  addVary,
  HttpError,
  isAborted,
  isQueued,
  NO_STORE,
  toError,
  whenFirst,
  writeReply,
} from '../http/reply.ts';
import {
  byOption,
  bytes,
  count,
  formatValue,
  isEither,
  isOneOf,
  optionalFunction,
  optionError,
  type Rules,
  resolveOptions,
  rule,
  type WithDefaults,
} from '../options/rules.ts';
import { RECEIVE_FILES } from '../options/scopes.ts';
import { caught, isCount, isFunction, isObject } from '../options/values.ts';
import { type FilePart, tooManyFiles } from './form.ts';
import { type Exchange, RECEIPT_RULES, Receipt, type ReceiptSettings, receiptSettings } from './receipt.ts';

type Options = ReceiveFilesOptions;
type WithoutDefault = 'files' | 'discard' | 'onRefused';
type ResolvedOptions = WithDefaults<Omit<Options, WithoutDefault>> & Required<Pick<Options, WithoutDefault>>;

/** The options of `receiveFiles` after checks. */
interface FormSettings extends ReceiptSettings, Pick<ResolvedOptions, 'storage' | WithoutDefault> {
  readonly maxFiles: number;
}

const KIB = 1024;
/** Milliseconds. */
const BODY_TIMEOUT = 30_000;
const isCounts = (value: unknown): boolean => isObject(value) && Object.values(value).every(isCount);

const RULES: Rules<ResolvedOptions> = {
  ...RECEIPT_RULES,
  files: rule(undefined, isCounts, 'an object with the number of files by name, such as { photo: 1 }'),
  maxFields: count(100),
  maxFieldBytes: bytes(64 * KIB, { from: 0 }),
  storage: rule<ResolvedOptions['storage']>(
    'spool',
    isEither(isOneOf('spool', 'memory'), isFunction),
    "'spool', 'memory', or a function of the file",
  ),
  discard: optionalFunction(),
  onRefused: optionalFunction(),
};

/** Checks the options of `receiveFiles` and adds defaults. */
export function resolveFormOptions(given: unknown): FormSettings {
  const options = resolveOptions(RECEIVE_FILES, given, RULES);
  const { files, storage, discard, onRefused } = options;
  if (discard !== undefined && typeof storage !== 'function')
    throw optionError(
      RECEIVE_FILES,
      'option "discard" is set, but "storage" is no function, so that there is nothing to discard',
    );
  const { maxFiles = fileCount(files) ?? options.maxFiles } = (given ?? {}) as Options;
  const settings = receiptSettings(
    RECEIVE_FILES,
    given ?? {},
    { ...options, maxFiles, bodyTimeout: BODY_TIMEOUT, fieldOption: byOption('maxFieldBytes') },
    (error) => error,
  );
  const inMemory =
    storage === 'memory' ? { memoryBytesPerFile: settings.maxFileBytes, tempDir: undefined } : {};
  return { ...settings, ...inMemory, maxFiles, files, storage, discard, onRefused };
}

const warn: (error: Error) => void = createWarningLog({
  owner: 'receiveFiles',
  type: 'UploadWarning',
  code: 'ESPALIER_UPLOADS',
});

/** The parser lets one file more pass, so that the message says which name has too many or is not expected. */
function fileCount(files: Options['files']): number | undefined {
  return files && Object.values(files).reduce((sum, most) => sum + most, 1);
}

/** Creates the middleware, and the function that returns what it has received. */
export function createFormReceiver<Name extends string, Stored>(
  given: ReceiveFilesOptions<Name, Stored> | undefined,
): FormReceiver<Name, Stored> {
  const settings = resolveFormOptions(given);
  const forms = new WeakMap<IncomingMessage, ReceivedForm>();
  const receive = (req: ConnectRequest, res: ServerResponse, next: NextFunction): void => {
    if (!isForm(req)) {
      const files = noFiles(settings);
      forms.set(req, { files, body: {} });
      Object.assign(req, { files });
      next();
      return;
    }
    receiveForm({ req, res }, settings).then(
      (form) => {
        forms.set(req, form);
        Object.assign(req, { files: form.files, body: form.body });
        next();
      },
      (error: unknown) => {
        if (isAborted(res)) return;
        if (!HttpError.is(error)) next(error);
        else if (settings.onRefused === undefined) sendRefusal(req, res, error);
        else
          void caught<unknown>(
            () => settings.onRefused?.(error as HttpError & RefusedForm, req, res, next),
            next,
          );
      },
    );
  };
  return Object.assign(
    function receiveFilesMiddleware(req: ConnectRequest, res: ServerResponse, next: NextFunction): void {
      // A response that waits for an earlier one does not say when its connection is lost.
      if (isQueued(res)) whenFirst(res, () => receive(req, res, next));
      else receive(req, res, next);
    },
    {
      form(req: IncomingMessage) {
        const form = forms.get(req);
        if (form !== undefined) return form as ReceivedForm<Name, Stored>;
        throw new TypeError(
          'receiveFiles has not received this request: mount what it returns before the handler',
        );
      },
    },
  );
}

/** Sends the message as text to a page, and as JSON to a program. */
function sendRefusal(
  req: IncomingMessage,
  res: ServerResponse,
  { status, code, message, headers }: HttpError,
): void {
  const isPage = /\btext\/html\b/i.test(req.headers.accept ?? '');
  const type = isPage ? 'text/plain; charset=utf-8' : 'application/json; charset=utf-8';
  const body = isPage ? `${message}\n` : JSON.stringify({ error: { code, message } });
  addVary(res, 'Accept');
  writeReply(req, res, { status, headers: { ...NO_STORE, ...headers, 'content-type': type }, body });
}

/** Receives the form of a request. Rejects with an HttpError for a client's mistake; then nothing of it is left. */
async function receiveForm(exchange: Exchange, settings: FormSettings): Promise<ReceivedForm> {
  const receipt = new Receipt(exchange, settings, (error) => warn(toError(error)));
  const form = new FormContent(receipt, settings);
  try {
    receipt.open();
    await form.read();
    receipt.complete();
    return form;
  } catch (error) {
    const reason = receipt.stop(error);
    // The response does not wait for it.
    void form.discard();
    throw reason;
  }
}

/** The content of a form: what handlers get. */
class FormContent implements ReceivedForm {
  readonly files: Record<string, ReceivedFile[]>;
  readonly body: FormBody = Object.create(null);
  readonly #receipt: Receipt;
  readonly #settings: FormSettings;
  /** What the function `storage` stores, in the order of the files. */
  readonly #storing: Promise<void>[] = [];

  constructor(receipt: Receipt, settings: FormSettings) {
    this.#receipt = receipt;
    this.#settings = settings;
    this.files = noFiles(settings);
  }

  /** Resolves when the form has ended and every file is stored. */
  async read(): Promise<void> {
    const { form, files } = this.#receipt;
    for (let part = await form.next(); part !== undefined; part = await form.next()) {
      // Browsers send a file without a name for an empty input.
      if (part.kind === 'file') this.#takeFile(part);
      else if (part.kind === 'text') this.#takeText(part.name, part.value);
    }
    await files.stored();
    await Promise.all(this.#storing);
  }

  /** Discards what the function `storage` has stored, also what it stores later. */
  async discard(): Promise<void> {
    const { discard } = this.#settings;
    await Promise.allSettled(this.#storing);
    if (discard === undefined) return;
    for (const file of Object.values(this.files).flat()) {
      if (!('stored' in file)) continue;
      try {
        await discard(file.stored, file);
      } catch (error) {
        warn(new Error(`the function "discard" failed: ${toError(error).message}`, { cause: error }));
      }
    }
  }

  #takeText(name: string, value: string): void {
    const present = this.body[name];
    this.body[name] = present === undefined ? value : [present, value].flat();
  }

  #takeFile(part: FilePart): void {
    const { files, storage } = this.#settings;
    if (files !== undefined && !Object.hasOwn(files, part.name))
      throw unexpectedFile(part, Object.keys(files));
    const list = this.files[part.name] ?? [];
    this.files[part.name] = list;
    const most = files?.[part.name];
    if (most !== undefined && list.length >= most) throw tooManyFiles(most, RECEIVE_FILES, part.name);
    const { file, accepted } = this.#receipt.files.store(part);
    list.push(file);
    if (typeof storage !== 'function') return;
    const storing = storeFile(file, accepted, storage);
    storing.catch((error: Error) => this.#receipt.form.fail(error));
    this.#storing.push(storing);
  }
}

/** The files of a form without files: an empty list for each name of the option `files`. */
function noFiles({ files = {} }: Pick<FormSettings, 'files'>): Record<string, ReceivedFile[]> {
  return Object.assign(Object.create(null), Object.fromEntries(Object.keys(files).map((name) => [name, []])));
}

async function storeFile(
  file: ReceivedFile,
  accepted: Promise<void> | undefined,
  storage: (file: ReceivedFile) => MaybePromise<unknown>,
): Promise<void> {
  await accepted;
  const stored = await storage(file);
  Object.assign(file, { stored });
}

const unexpectedFile = ({ name }: FilePart, names: readonly string[]): HttpError => {
  const expected = names.length === 0 ? 'no files are expected' : `expected: ${names.join(', ')}`;
  return new HttpError(400, `The file part ${formatValue(name)} is not expected; ${expected}`, {
    code: 'UNEXPECTED_FILE',
  });
};

/** Whether a request has a form that may contain files. */
const isForm = ({ headers, method }: IncomingMessage): boolean =>
  method !== 'GET' && method !== 'HEAD' && /^multipart\/form-data\b/i.test(headers['content-type'] ?? '');
