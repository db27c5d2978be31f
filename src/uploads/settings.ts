import { accessSync, constants } from 'node:fs';
import { tmpdir } from 'node:os';
import type { UploadedFileInfo, UploadOptions } from '../../types/uploads.ts';
import { resolveOptions, wrongOption } from '../options/resolve-options.ts';
import { count, flag, isFunction, isString, rule, type WithDefaults } from '../options/rules.ts';
import { UPLOAD_OPTIONS } from '../options/scopes.ts';
import { type Budget, createBudget } from './budget.ts';
import { createFormParser, type ParseForm } from './form.ts';

/** The `uploads` option, settled, with what all requests of one handler share. */
export interface UploadSettings extends WithDefaults<UploadOptions> {
  /** Values in the JSON of `operations`, and of `map`. */
  readonly maxValues: number;
  readonly budget: Budget;
  readonly parseForm: ParseForm;
}

const MIB = 1024 * 1024;

/** Settles the `uploads` option, once per handler. */
export function resolveUploadOptions(options: unknown, maxValues: number): UploadSettings {
  const settled = resolveOptions<WithDefaults<UploadOptions>>(UPLOAD_OPTIONS, options, {
    maxFileSize: count(25 * MIB, 'bytes'),
    maxFiles: count(20),
    maxRequestSize: count(0, 'bytes'),
    maxFieldSize: count(MIB, 'bytes'),
    memoryPerFile: count(256 * 1024, 'bytes'),
    memoryTotal: count(64 * MIB, 'bytes'),
    tempDir: rule(tmpdir(), isString, 'the path of a directory'),
    streaming: flag(false),
    accept: rule<(file: UploadedFileInfo) => boolean>(() => true, isFunction, 'a function of the file'),
  });
  const given: UploadOptions = options ?? {};
  if (given.maxRequestSize === undefined) {
    settled.maxRequestSize = Math.max(100 * MIB, settled.maxFileSize + 2 * MIB);
  }
  if (given.tempDir !== undefined) checkDirectory(given.tempDir);
  return {
    ...settled,
    maxValues,
    budget: createBudget(settled.memoryTotal),
    parseForm: createFormParser(settled),
  };
}

/** A trailing slash makes the check fail for anything but a directory. */
function checkDirectory(path: string): void {
  try {
    accessSync(`${path}/`, constants.W_OK | constants.X_OK);
  } catch {
    throw wrongOption(UPLOAD_OPTIONS, 'tempDir', path, 'a directory that may be written');
  }
}
