import type { ConnectRequest } from '../../types/connect.ts';
import { decodePart } from '../http/routing.ts';
import type { Dependency, Files } from './files.ts';
import { mediaTypeOf } from './media-types.ts';
import type { StaticSettings } from './options.ts';
import { isServed } from './variants.ts';

/** The language of the folder that a path is in; undefined for a path outside of all of them. */
export function languageOf(path: string, { languages }: StaticSettings): string | undefined {
  const [, folder] = path.split('/', 2);
  return languages.find((language) => language === folder);
}

/**
 * The language of a page, and its paths in the others that exist. Both are undefined for a file that is no page, and the paths for
 * one in the folder of a language. Adds the paths whose stat decided to `dependencies`.
 */
export async function findLanguages(
  files: Files,
  filePath: string,
  settings: StaticSettings,
  dependencies: Dependency[],
): Promise<{ readonly language?: string | undefined; readonly paths?: Map<string, string> }> {
  if (settings.languages.length === 0 || !mediaTypeOf(filePath).startsWith('text/html')) return {};
  const own = languageOf(filePath, settings);
  if (own !== undefined) return { language: own };
  const paths = new Map<string, string>();
  for (const language of settings.languages) {
    const path = `/${language}${filePath}`;
    if (await isServed(files, path, dependencies)) paths.set(language, path);
  }
  const [language] = settings.languages;
  return paths.size === 0 ? { language } : { language, paths };
}

/** What a page depends on that may be sent in several languages. */
export const varyOf = ({ languageCookie }: StaticSettings): string =>
  languageCookie === undefined ? 'Accept-Language' : 'Accept-Language, Cookie';

/** The path of a page in the language that the client prefers; undefined for the page itself, in the default language. */
export function preferredPath(
  req: ConnectRequest,
  paths: ReadonlyMap<string, string>,
  settings: StaticSettings,
): string | undefined {
  const [initial] = settings.languages;
  const language = preferredLanguages(req, settings).find((each) => paths.has(each) || each === initial);
  return paths.get(language ?? '');
}

/** All languages, those that the client prefers first: by the cookie, then by the header, then by the order of the option. */
export function preferredLanguages(
  { headers }: ConnectRequest,
  { languages, orderLanguages, languageCookie }: StaticSettings,
): readonly string[] {
  const [, value = ''] = languageCookie?.exec(headers.cookie ?? '') ?? [];
  const chosen = decodePart(value);
  const ranges = headers['accept-language'] ?? '';
  return chosen || ranges ? orderLanguages(chosen ? `${chosen},${ranges}` : ranges) : languages;
}
