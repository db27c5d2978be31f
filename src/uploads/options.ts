import { accessSync, constants } from 'node:fs';
import { tmpdir } from 'node:os';
import type { UploadedFileInfo, UploadOptions } from '../../types/uploads.ts';
import { registerGauge } from '../diagnostics/gauges.ts';
import { createDeadlines, type Deadlines } from '../http/body/deadlines.ts';
import { loadOnce } from '../http/load-once.ts';
import { resolveOptions, wrongOption } from '../options/resolve-options.ts';
import { count, flag, isFunction, isString, positive, rule, type WithDefaults } from '../options/rules.ts';
import { UPLOAD_OPTIONS } from '../options/scopes.ts';
import type { CreateParser } from './form/form.ts';
import { loadMulterParser } from './form/multer.ts';
import type { SpoolSettings } from './storage/spool.ts';
import { storageError } from './storage/storage-error.ts';

/** The checked `uploads` option, and the state that all requests of one handler share. */
export interface UploadSettings extends WithDefaults<UploadOptions> {
  /** Maximum number of values in the JSON of `operations`. */
  readonly maxValues: number;
  readonly budget: SpoolSettings['budget'];
  readonly deadlines: Deadlines;
  /** Whether `bodyTimeout` applies to HTTP/1, where the server has a deadline for requests. */
  readonly limitsHttp1: boolean;
  /** Loads the parser at the first request. */
  readonly loadParser: () => Promise<CreateParser>;
}

const MIB = 1024 * 1024;
/** Milliseconds; the default `requestTimeout` of Node's HTTP/1 servers. */
const DEFAULT_TIMEOUT = 300_000;

/** Checks the `uploads` option and adds defaults, once per handler. */
export function resolveUploadOptions(options: unknown, maxValues: number): UploadSettings {
  const settings = resolveOptions<WithDefaults<UploadOptions>>(UPLOAD_OPTIONS, options, {
    maxFileSize: count(25 * MIB, 'bytes'),
    maxFiles: count(20),
    maxRequestSize: count(0, 'bytes'),
    maxFieldSize: count(MIB, 'bytes'),
    memoryPerFile: count(256 * 1024, 'bytes'),
    memoryTotal: count(64 * MIB, 'bytes'),
    tempDir: rule(tmpdir(), isString, 'the path of a directory'),
    bodyTimeout: positive(DEFAULT_TIMEOUT, 'milliseconds'),
    streaming: flag(false),
    accept: rule<(file: UploadedFileInfo) => boolean>(() => true, isFunction, 'a function of the file'),
  });
  const given: UploadOptions = options ?? {};
  if (given.maxRequestSize === undefined) {
    settings.maxRequestSize = Math.max(100 * MIB, settings.maxFileSize + 2 * MIB);
  }
  if (given.tempDir !== undefined) checkDirectory(given.tempDir);
  const { memoryTotal } = settings;
  const budget = { left: memoryTotal };
  const read = () => ({ bytes: memoryTotal - budget.left, maxBytes: memoryTotal });
  registerGauge(budget, { kind: 'uploads', read });
  return {
    ...settings,
    maxValues,
    budget,
    deadlines: createDeadlines(settings.bodyTimeout),
    limitsHttp1: given.bodyTimeout !== undefined,
    loadParser: loadOnce(() =>
      loadMulterParser(settings).catch((error: Error) => {
        throw storageError(error);
      }),
    ),
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
