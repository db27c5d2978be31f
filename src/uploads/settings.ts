import { accessSync, constants } from 'node:fs';
import { tmpdir } from 'node:os';
import type { UploadedFileInfo, UploadOptions } from '../../types/uploads.ts';
import {
  type Filled,
  isBoolean,
  isCount,
  isFunction,
  isString,
  optionError,
  type Rule,
  rule,
  settle,
  show,
} from '../options/settle.ts';
import { type Budget, createBudget } from './budget.ts';
import { createFormParser, type ParseForm } from './form.ts';

/** The `uploads` option, settled, with what all requests of one handler share. */
export interface UploadSettings extends Filled<UploadOptions> {
  /** Values in the JSON of `operations`, and of `map`. */
  readonly maxValues: number;
  readonly budget: Budget;
  readonly parseForm: ParseForm;
}

const MIB = 1024 * 1024;
const OWNER = 'graphqlHTTP: uploads';
const PAGE = 'uploads';

/** Settles the `uploads` option, once per handler. */
export function settleUploads(options: unknown, maxValues: number): UploadSettings {
  const settled = settle<Filled<UploadOptions>>(OWNER, PAGE, options, {
    maxFileSize: count(25 * MIB),
    maxFiles: count(20),
    maxRequestSize: count(0),
    maxFieldSize: count(MIB),
    memoryPerFile: count(256 * 1024),
    memoryTotal: count(64 * MIB),
    tempDir: rule(tmpdir(), isString, 'the path of a directory'),
    streaming: rule(false, isBoolean, 'a boolean'),
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

function count(fallback: number): Rule<number> {
  return rule(fallback, isCount, 'a whole number from 0');
}

/** A trailing slash makes the check fail for anything but a directory. */
function checkDirectory(path: string): void {
  try {
    accessSync(`${path}/`, constants.W_OK | constants.X_OK);
  } catch {
    throw optionError(
      `${OWNER}: option "tempDir" is ${show(path)}; accepted: a directory that may be written`,
      PAGE,
    );
  }
}
