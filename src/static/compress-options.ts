import { resolve } from 'node:path';
import * as zlib from 'node:zlib';
import type { CompressOptions, DictionaryOptions, Precompressed } from '../../types/static.ts';
import { resolveOptions } from '../options/resolve-options.ts';
import {
  count,
  isBoolean,
  isEither,
  isListOf,
  isObject,
  isOneOf,
  isString,
  type Rules,
  rule,
  type WithDefaults,
} from '../options/rules.ts';
import { STATIC_OPTIONS } from '../options/scopes.ts';
import { CODINGS, MIB } from './option-rules.ts';

/** The `compress` option after checks, with defaults filled in. */
export interface CompressSettings {
  readonly codings: readonly Precompressed[];
  readonly minBytes: number;
  readonly maxFileBytes: number;
  readonly maxBytes: number;
  /** More than 0, at most 1. */
  readonly cpuShare: number;
  readonly dictionaries: DictionarySettings | undefined;
}

/** The option `compress.dictionaries` after checks. */
interface DictionarySettings {
  /** Absolute paths of directories with previous builds. */
  readonly previous: readonly string[];
}

const isPath = (value: unknown): boolean => isString(value) && value !== '';
const isShare = (value: unknown): boolean => typeof value === 'number' && value > 0 && value <= 1;

const DICTIONARY_RULES: Rules<WithDefaults<DictionaryOptions>> = {
  previous: rule<string | readonly string[]>(
    [],
    isEither(isPath, isListOf(isPath)),
    'a path, or a list of paths',
  ),
};

type ResolvedOptions = Omit<CompressSettings, 'dictionaries'> & { dictionaries: boolean | DictionaryOptions };

const RULES: Rules<ResolvedOptions> = {
  codings: rule(CODINGS, isListOf(isOneOf(...CODINGS)), "a list of 'br', 'zstd', 'gzip'"),
  minBytes: count(1024, 'bytes'),
  maxFileBytes: count(8 * MIB, 'bytes'),
  maxBytes: count(32 * MIB, 'bytes'),
  cpuShare: rule(0.5, isShare, 'a number over 0 and at most 1'),
  dictionaries: rule<boolean | DictionaryOptions>(
    false,
    isEither(isBoolean, isObject),
    'a boolean, or an object',
  ),
};

/** Checks the `compress` option. Codings that this version of Node cannot create are left out. */
export function resolveCompressOptions(given: boolean | CompressOptions): CompressSettings | undefined {
  if (given === false) return undefined;
  const options = resolveOptions(
    { ...STATIC_OPTIONS, within: 'compress' },
    given === true ? {} : given,
    RULES,
  );
  const codings = options.codings.filter((coding) => coding !== 'zstd' || 'zstdCompress' in zlib);
  return { ...options, codings, dictionaries: resolveDictionaryOptions(options.dictionaries) };
}

function resolveDictionaryOptions(given: boolean | DictionaryOptions): DictionarySettings | undefined {
  if (given === false) return undefined;
  const { previous } = resolveOptions(
    { ...STATIC_OPTIONS, within: 'compress.dictionaries' },
    given === true ? {} : given,
    DICTIONARY_RULES,
  );
  return { previous: [previous].flat().map((path) => resolve(path)) };
}
