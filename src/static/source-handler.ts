import type { StaticSource } from '../../types/sources.ts';
import { optionError, wrongArgument } from '../options/resolve-options.ts';
import { isFunction, isObject } from '../options/rules.ts';
import { STATIC_OPTIONS } from '../options/scopes.ts';
import { budgetFor } from './cache/default-budget.ts';
import { FileCache } from './cache/file-cache.ts';
import { createCodingFactory } from './compression/compressed-codings.ts';
import { Compressor } from './compression/compressor.ts';
import { createCacheHandler, type StaticHandler } from './handler.ts';
import type { StaticSettings } from './options.ts';
import { checkedSource } from './sources/checked-source.ts';
import { sendFromSource } from './sources/send-from-source.ts';
import { SourceChecker } from './sources/source-checker.ts';

/** Creates the handler of a `staticFiles` middleware for the files of a source. */
export function createSourceHandler(given: StaticSource, settings: StaticSettings): StaticHandler {
  const source = checkedSource(given);
  const { compress } = settings;
  if (compress?.dictionaries !== undefined) {
    throw optionError(
      STATIC_OPTIONS,
      'option "compress.dictionaries" is on, but the files come from a source; it works with a directory only',
    );
  }
  const codingFactory = compress && createCodingFactory(new Compressor(compress), undefined);
  const cache = new FileCache(budgetFor(settings.cache));
  return createCacheHandler({
    settings,
    cache,
    checker: new SourceChecker({ source, settings, codingFactory }, cache),
    sendBody: (request, plan, retry) => sendFromSource(source, request, plan, retry),
  });
}

/** Whether the first argument of `staticFiles` is a source. Throws if a function is missing. */
export function isSource(argument: unknown): argument is StaticSource {
  if (!isObject(argument) || argument instanceof URL) return false;
  for (const name of ['stat', 'open', 'list']) {
    if (isFunction(argument[name])) continue;
    const accepted = `a path, a file: URL, or a source with the functions stat, open and list; ${name} is missing`;
    throw wrongArgument(STATIC_OPTIONS, 'dir', argument, accepted);
  }
  return true;
}
