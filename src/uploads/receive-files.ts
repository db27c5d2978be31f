import type { IncomingMessage, ServerResponse } from 'node:http';
import type { ConnectRequest, NextFunction } from '../../types/connect.ts';
import type {
  FormBody,
  FormReceiver,
  ReceivedFile,
  ReceivedForm,
  ReceiveFilesOptions,
  UploadedFile,
} from '../../types/uploads.ts';
import { createWarningLog } from '../diagnostics/logging.ts';
import { HttpError, isAborted, isQueued, whenFirst } from '../http/reply.ts';
import { byOption, bytes, formatValue, isEither, isOneOf, resolveOptions, rule } from '../options/rules.ts';
import { RECEIVE_FILES } from '../options/scopes.ts';
import { isCount, isFunction, isObject } from '../options/values.ts';
import { type Exchange, type FilePart, type Part, tooManyFiles } from './form.ts';
import { RECEIPT_RULES, Receipt, type ReceiptSettings, receiptSettings } from './receipt.ts';

type Options = ReceiveFilesOptions;

/** The options of `receiveFiles` after checks. */
interface FormSettings extends ReceiptSettings {
  readonly files: Options['files'];
  /** Stores a file elsewhere. */
  readonly store: ((file: UploadedFile) => unknown) | undefined;
  /** Maximum size of all texts. */
  readonly maxTextBytes: number;
}

const MAX_FILES = 20;
const MAX_FIELDS = 1000;
const BODY_TIMEOUT = 30_000;

const RULES = {
  ...RECEIPT_RULES,
  maxFiles: rule<number | undefined>(undefined, isCount, 'a whole number from 0'),
  files: rule<Options['files']>(
    undefined,
    (value) => isObject(value) && Object.values(value).every(isCount),
    'an object with the number of files by name, such as { photo: 1 }',
  ),
  maxFieldBytes: bytes(64 * 1024, { from: 0 }),
  storage: rule<NonNullable<Options['storage']>>(
    'spool',
    isEither(isOneOf('spool', 'memory'), isFunction),
    "'spool', 'memory', or a function of the file",
  ),
};

/** Checks the options of `receiveFiles` and adds defaults. */
export function resolveFormOptions(given: unknown): FormSettings {
  const options = resolveOptions(RECEIVE_FILES, given, RULES);
  const { files, storage, maxFieldBytes } = options;
  const settings = receiptSettings(options, {
    scope: RECEIVE_FILES,
    // The parser lets one file more pass, so that the message says which name has too many or is not expected.
    maxFiles:
      options.maxFiles ?? (files ? Object.values(files).reduce((sum, most) => sum + most, 1) : MAX_FILES),
    maxFields: MAX_FIELDS,
    maxFieldBytes,
    fieldOption: byOption('maxFieldBytes'),
    bodyTimeout: BODY_TIMEOUT,
    readerError: (error) => error,
  });
  const store = typeof storage === 'function' ? storage : undefined;
  const form = { ...settings, files, store, maxTextBytes: 16 * maxFieldBytes };
  if (storage !== 'memory') return form;
  return { ...form, memoryBytesPerFile: settings.maxFileBytes, tempDir: undefined };
}

const warn: (error: Error) => void = createWarningLog({
  owner: 'receiveFiles',
  type: 'UploadWarning',
  code: 'ESPALIER_UPLOADS',
});

/** Creates the middleware, and the function that returns what it has received. */
export function createFormReceiver<Name extends string, Stored>(
  given: ReceiveFilesOptions<Name, Stored> | undefined,
): FormReceiver<Name, Stored> {
  const settings = resolveFormOptions(given);
  const forms = new WeakMap<IncomingMessage, ReceivedForm>();
  const receive = (req: ConnectRequest, res: ServerResponse, next: NextFunction): void => {
    const pass = (form: ReceivedForm, members: Partial<ReceivedForm>): void => {
      forms.set(req, form);
      Object.assign(req, members);
      next();
    };
    if (isForm(req)) {
      receiveForm({ req, res }, settings).then(
        (form) => pass(form, form),
        (error: unknown) => {
          if (!isAborted(res)) next(error);
        },
      );
    } else {
      const files = noFiles(settings);
      pass({ files, body: {} }, { files });
    }
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

/** Receives the form of a request. Rejects with an HttpError for a client's mistake; then nothing of it is left. */
async function receiveForm(exchange: Exchange, settings: FormSettings): Promise<ReceivedForm> {
  const receipt = new Receipt(exchange, settings, warn);
  const files = noFiles(settings);
  const body: FormBody = Object.create(null);
  let textBytes = 0;
  const take = (part: Part): void => {
    if (part.kind === 'text') {
      textBytes += Buffer.byteLength(part.value);
      if (textBytes > settings.maxTextBytes) throw textsTooLarge(settings);
      const present = body[part.name];
      body[part.name] = present === undefined ? part.value : [present, part.value].flat();
    } else if (part.kind === 'file') {
      const list = listOf(part, files, settings);
      list.push(receipt.store(part, settings.store));
    }
  };
  await receipt.receive(take, () => {});
  return { files, body };
}

type FileLists = Record<string, ReceivedFile[]>;

/** The files of a form without files: an empty list for each name of the option `files`. */
function noFiles({ files = {} }: FormSettings): FileLists {
  return Object.assign(Object.create(null), Object.fromEntries(Object.keys(files).map((name) => [name, []])));
}

/**
 * Returns the list that a file belongs to.
 *
 * @throws HttpError 400 for a name that is not expected, 413 for one file too many.
 */
function listOf({ name }: FilePart, lists: FileLists, { files }: FormSettings): ReceivedFile[] {
  if (files !== undefined && !Object.hasOwn(files, name)) throw unexpectedFile(name, Object.keys(files));
  lists[name] ??= [];
  const most = files?.[name] ?? Number.POSITIVE_INFINITY;
  if (lists[name].length >= most) throw tooManyFiles(most, RECEIVE_FILES, name);
  return lists[name];
}

function textsTooLarge({ maxTextBytes }: FormSettings): HttpError {
  const limit = `${maxTextBytes} bytes, 16 times the option "maxFieldBytes"`;
  return new HttpError(413, `The texts of the form are larger than ${limit}`, { code: 'FIELD_TOO_LARGE' });
}

function unexpectedFile(name: string, names: readonly string[]): HttpError {
  const expected = names.length === 0 ? 'no files are expected' : `expected: ${names.join(', ')}`;
  return new HttpError(400, `The file part ${formatValue(name)} is not expected; ${expected}`, {
    code: 'UNEXPECTED_FILE',
  });
}

/** Whether a request has a form that may contain files. */
const isForm = ({ headers, method }: IncomingMessage): boolean =>
  method !== 'GET' && method !== 'HEAD' && /^multipart\/form-data\b/i.test(headers['content-type'] ?? '');
