import { resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { FindDocument, PersistedQueryStore } from '../../../types/graphql.ts';
import type { EngineSettings } from '../../execution/types.ts';
import {
  delay,
  formatValue,
  isBoolean,
  isEither,
  isFunction,
  isObject,
  isString,
  optionError,
  positive,
  type Rules,
  resolveOptions,
  rule,
  wrongOption,
} from '../../options/rules.ts';
import { DOCUMENT_OPTIONS, PERSISTED_QUERY_OPTIONS } from '../../options/scopes.ts';
import type { CoreSettings } from '../options.ts';
import { parseManifest, type TrustedTexts } from './trusted/manifest.ts';
import { readDocumentsSync } from './trusted/read-files.ts';

/** The parts of a core that its documents need. */
export interface CoreParts {
  /** The schema, or a function that returns one per request. */
  readonly schema: unknown;
  readonly options: CoreSettings;
  readonly engineSettings: EngineSettings;
  /** Reports an error outside of requests. */
  report(error: unknown): void;
}

/** The trusted documents: a list, with the path that it was read from, or a function. */
type TrustedSource =
  | { readonly texts: TrustedTexts; readonly path: string | undefined }
  | { readonly find: FindDocument };

/** The options of automatic persisted queries after checks. */
export interface PersistedQuerySettings {
  readonly store: PersistedQueryStore | undefined;
  readonly ttl: number;
  readonly timeout: number;
  readonly prefix: string;
}

/** The option `documents` after checks. */
export interface DocumentSettings {
  readonly from: TrustedSource | undefined;
  readonly only: boolean | ((source: unknown) => boolean);
  readonly apq: PersistedQuerySettings | undefined;
  /** The path of the file that records documents. */
  readonly record: string | undefined;
}

interface Given {
  readonly from: unknown;
  readonly only: DocumentSettings['only'];
  readonly apq: unknown;
  readonly record: string | URL | undefined;
}

const isPath = isEither((value) => isString(value) && value !== '', isFileUrl);

const rules: Rules<Given> = {
  from: rule<unknown>(
    undefined,
    isEither(isPath, isObject, isFunction),
    'the path of a file or directory, an object or Map of texts by id, or a function of the id',
  ),
  only: rule<DocumentSettings['only']>(
    false,
    isEither(isBoolean, isFunction),
    'a boolean, or a function of the request',
  ),
  apq: rule<unknown>(false, isEither(isBoolean, isObject), 'a boolean, or an object of options'),
  record: rule<Given['record']>(undefined, isPath, 'the path of a JSON file'),
};

const apqRules: Rules<PersistedQuerySettings> = {
  store: rule<PersistedQuerySettings['store']>(
    undefined,
    (value) => isObject(value) && isFunction(value['get']) && isFunction(value['set']),
    'a client of ioredis, or an object with the functions "get" and "set"',
  ),
  ttl: positive(24 * 60 * 60 * 1000, 'milliseconds'),
  timeout: delay(200),
  prefix: rule('espalier:apq:', isString, 'a string'),
};

/**
 * Checks the option `documents`, and reads the trusted documents.
 *
 * @throws TypeError (code `ERR_OPTION`).
 */
export function resolveDocuments(given: unknown): DocumentSettings {
  const { from, only, apq, record } = resolveOptions(DOCUMENT_OPTIONS, given, rules);
  const fail = (message: string): TypeError => optionError(DOCUMENT_OPTIONS, message);
  if (only !== false && from === undefined) {
    throw fail('option "documents.only" refuses all documents without "documents.from"; set it too');
  }
  if (only === true && apq !== false) {
    throw fail('option "documents.apq" has no effect with "documents.only": true; remove one of them');
  }
  if (record !== undefined) assertRecord(record, only);
  const recordPath = record === undefined ? undefined : toPath(record);
  return {
    from: from === undefined ? undefined : sourceOf(from, recordPath),
    only,
    apq:
      apq === false ? undefined : resolveOptions(PERSISTED_QUERY_OPTIONS, apq === true ? {} : apq, apqRules),
    record: recordPath,
  };
}

function assertRecord(record: string | URL, only: DocumentSettings['only']): void {
  const reason =
    only === true
      ? 'has no effect with "documents.only": true; remove one of them'
      : process.env['NODE_ENV'] === 'production'
        ? 'is for development, because every client can add documents; remove it when NODE_ENV is production'
        : undefined;
  if (reason === undefined) return;
  throw optionError(
    DOCUMENT_OPTIONS,
    `option "documents.record" is ${formatValue(String(record))} and ${reason}`,
  );
}

/** A file that records documents may be missing until the first one is recorded. */
function sourceOf(from: unknown, recordPath: string | undefined): TrustedSource {
  if (typeof from === 'function') return { find: from as FindDocument };
  const path = isString(from) || from instanceof URL ? toPath(from) : undefined;
  try {
    return { texts: path === undefined ? parseManifest(from) : readDocumentsSync(path), path };
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT' && path === recordPath) return { texts: new Map(), path };
    if (path === undefined)
      throw wrongOption(DOCUMENT_OPTIONS, 'from', from, `trusted documents: ${message}`);
    throw optionError(
      DOCUMENT_OPTIONS,
      `option "documents.from" is ${formatValue(path)}, which cannot be read: ${message}`,
    );
  }
}

const toPath = (path: string | URL): string => (isString(path) ? resolve(path) : fileURLToPath(path));

function isFileUrl(value: unknown): boolean {
  return value instanceof URL && value.protocol === 'file:';
}
