import { accessSync, constants } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import { setImmediate } from 'node:timers';
import type { UploadedFileInfo, UploadOptions } from '../../types/uploads.ts';
import { createChannel, type EventChannel, Observed } from '../diagnostics/channels.ts';
import { debug } from '../diagnostics/logging.ts';
import { registerGauge } from '../diagnostics/stats.ts';
import { drainRequest, timedOut } from '../http/body.ts';
import { LazyPackage } from '../http/lazy-package.ts';
import { HttpError, toError } from '../http/reply.ts';
import { createDeadlines, type Deadlines } from '../http/timers.ts';
import {
  bytes,
  count,
  duration,
  flag,
  formatValue,
  isFunction,
  isString,
  type Rules,
  resolveOptions,
  rule,
  type WithDefaults,
  wrongOption,
} from '../options/rules.ts';
import { UPLOAD_OPTIONS } from '../options/scopes.ts';
import { StoredFiles, storageError } from './files.ts';
import { type CreateParser, clientAborted, Form, loadMulterParser, openForm, type Part } from './form.ts';
import { duplicateField, missingFilename, readPlan, type UploadPlan } from './plan.ts';
import type { SpoolSettings } from './spool.ts';

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

/** The functions that the receiver of a request calls. */
interface UploadCallbacks<Params> {
  /** Called once with the JSON value of `operations`, before any file is received. */
  parse(operations: unknown): Params;
  /** Called with an error of the storage that the client does not see. */
  report(error: unknown): void;
}

/**
 * Receives a request of the GraphQL multipart request specification, and assigns its files to the variables in the
 * result of `parse`. Resolves with that result when every file is stored or, with the option `streaming`, when the
 * header of every file has arrived.
 *
 * Rejects with an HttpError as soon as a client's mistake is detected, even while the client is sending; the
 * rest of the body is drained. All files are released when the response closes.
 */
export async function receiveUploads<Params>(
  { req, res }: { readonly req: IncomingMessage; readonly res: ServerResponse },
  settings: UploadSettings,
  { parse, report }: UploadCallbacks<Params>,
): Promise<Params> {
  const form = new Form();
  const files = new StoredFiles(settings, { failed: (error) => form.fail(error), report });
  const observed = observeUpload(req);
  let receiving = true;
  const { deadlines } = settings;
  const onTimeout = (): void => void stop(timedOut());

  function onReceived(error?: Error): void {
    receiving = false;
    observed?.end({ ...files.total(), error });
  }

  function stop(reason: unknown): Error {
    deadlines.clear(onTimeout);
    const error = form.fail(toError(reason));
    if (error instanceof HttpError && error.cause !== undefined) report(error.cause);
    debug.uploads('%s', error.message);
    files.fail(error);
    drainRequest(req, res);
    onReceived(error);
    return error;
  }

  res.once('close', () => {
    deadlines.clear(onTimeout);
    if (res.writableFinished) {
      // The response of a streaming upload may precede the end of a body that has arrived in full.
      setImmediate(() => receiving && !req.complete && form.fail(clientAborted()));
    } else if (receiving) form.fail(clientAborted());
    files.release();
  });
  if (settings.limitsHttp1 || req.httpVersionMajor >= 2) deadlines.set(onTimeout);
  try {
    const createParser = settings.parser.value ?? (await settings.parser.load());
    openForm(form, req, res, { maxRequestBytes: settings.maxRequestBytes, createParser });
    const plan = await readPlan(form, settings, parse);
    await takeMappedFiles(form, plan, files);
    const stored = takeRest(form, plan, files).then(() => {
      deadlines.clear(onTimeout);
      onReceived();
    });
    if (settings.streaming) stored.catch(stop);
    else await stored;
    return plan.params;
  } catch (error) {
    throw stop(error);
  }
}

/** Publishes a request; undefined without subscribers. */
function observeUpload(req: IncomingMessage): ObservedUpload | undefined {
  if (!uploadChannel.hasSubscribers) return undefined;
  const observed = new ObservedUpload(req);
  uploadChannel.publish(observed);
  return observed;
}

/** Resolves when every mapped file has begun to arrive. */
async function takeMappedFiles(form: Form, plan: UploadPlan<unknown>, files: StoredFiles): Promise<void> {
  while (files.count < plan.targets.size) {
    const part = await form.next();
    if (part === undefined) throw missingFile(plan, files);
    takePart(part, plan, files);
  }
}

/** Resolves when the form has ended and every file is stored. */
async function takeRest(form: Form, plan: UploadPlan<unknown>, files: StoredFiles): Promise<void> {
  for (let part = await form.next(); part !== undefined; part = await form.next()) {
    takePart(part, plan, files);
  }
  await files.stored();
}

function takePart(part: Part, { targets }: UploadPlan<unknown>, files: StoredFiles): void {
  const mapped = targets.get(part.name);
  if (part.kind === 'file') {
    // A file that is not in the map, or whose name was already used, is received and discarded.
    if (mapped === undefined || files.has(part.name)) part.stream.resume();
    else {
      const file = files.store(part);
      for (const { holder, key } of mapped) holder[key] = file;
    }
  } else if (mapped !== undefined) throw missingFilename(part);
  else if (part.kind === 'text' && (part.name === 'operations' || part.name === 'map'))
    throw duplicateField(part);
}

function missingFile({ targets }: UploadPlan<unknown>, files: StoredFiles): HttpError {
  const name = [...targets.keys()].find((expected) => !files.has(expected));
  return new HttpError(400, `The file ${formatValue(name)} of the "map" is missing`, {
    code: 'FILE_MISSING',
  });
}

/** The checked `uploads` option, and the state that all requests of one handler share. */
interface UploadSettings extends WithDefaults<UploadOptions> {
  /** Maximum number of values in the JSON of `operations`. */
  readonly maxValues: number;
  readonly budget: SpoolSettings['budget'];
  readonly deadlines: Deadlines;
  /** Whether `bodyTimeout` applies to HTTP/1, where the server has a deadline for requests. */
  readonly limitsHttp1: boolean;
  readonly parser: LazyPackage<CreateParser>;
}

const MIB = 1024 * 1024;
/** Milliseconds; the default `requestTimeout` of Node's HTTP/1 servers. */
const DEFAULT_TIMEOUT = 300_000;

const REPLACED_OPTIONS: Readonly<Record<string, string>> = {
  maxFileSize: 'use maxFileBytes',
  maxRequestSize: 'use maxRequestBytes',
  maxFieldSize: 'use maxFieldBytes',
  memoryPerFile: 'use memoryBytesPerFile',
  memoryTotal: 'use memoryBytes',
};

const rules: Rules<WithDefaults<UploadOptions>> = {
  maxFileBytes: bytes(25 * MIB, { from: 0 }),
  maxFiles: count(20),
  maxRequestBytes: bytes(0, { from: 0 }),
  maxFieldBytes: bytes(MIB, { from: 0 }),
  memoryBytesPerFile: bytes(256 * 1024, { from: 0 }),
  memoryBytes: bytes(64 * MIB, { from: 0 }),
  tempDir: rule(tmpdir(), isString, 'the path of a directory'),
  bodyTimeout: duration(DEFAULT_TIMEOUT),
  streaming: flag(false),
  accept: rule<(file: UploadedFileInfo) => boolean>(() => true, isFunction, 'a function of the file'),
};

/** Checks the `uploads` option and adds defaults, once per handler. */
export function resolveUploadOptions(options: unknown, maxValues: number): UploadSettings {
  const settings = resolveOptions(UPLOAD_OPTIONS, options, rules, REPLACED_OPTIONS);
  const given: UploadOptions = options ?? {};
  if (given.maxRequestBytes === undefined) {
    settings.maxRequestBytes = Math.max(100 * MIB, settings.maxFileBytes + 2 * MIB);
  }
  if (given.tempDir !== undefined) checkDirectory(given.tempDir);
  const { memoryBytes } = settings;
  const budget = { left: memoryBytes };
  const read = () => ({ bytes: memoryBytes - budget.left, maxBytes: memoryBytes });
  registerGauge(budget, { kind: 'uploads', read });
  const parser = new LazyPackage(() =>
    loadMulterParser(settings).catch((error: Error) => {
      throw storageError(error);
    }),
  );
  parser.preload();
  return {
    ...settings,
    maxValues,
    budget,
    deadlines: createDeadlines(settings.bodyTimeout),
    limitsHttp1: given.bodyTimeout !== undefined,
    parser,
  };
}

/** Checks that a path is a writable directory. The trailing slash makes the check fail for a file. */
function checkDirectory(path: string): void {
  try {
    accessSync(`${path}/`, constants.W_OK | constants.X_OK);
  } catch {
    throw wrongOption(UPLOAD_OPTIONS, 'tempDir', path, 'a writable directory');
  }
}
