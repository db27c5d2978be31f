import type { ConnectRequest } from '../../types/connect.ts';
import { addVary } from '../http/reply.ts';
import { decodePart } from '../http/routing.ts';
import type { Dependency, Files } from './files.ts';
import { mediaTypeOf } from './media-types.ts';
import type { StaticSettings } from './options.ts';
import { encodePath } from './path.ts';
import { type RequestTriple, referenceTo } from './request.ts';
import { isServed } from './variants.ts';

/** The language of the folder that a path is in; undefined for a path outside of all of them. */
export function languageOf(path: string, { languages }: StaticSettings): string | undefined {
  const [, folder] = path.split('/', 2);
  return languages.find((language) => language === folder);
}

/** The language of a page, its paths in the others that exist, and the paths whose stat decided. */
interface Languages {
  /** Undefined for a file that is no page. */
  readonly language: string | undefined;
  /** Undefined for a page in the folder of a language. */
  readonly paths: ReadonlyMap<string, string> | undefined;
  readonly vary: string | undefined;
  readonly dependencies: readonly Dependency[];
}

export async function findLanguages(
  files: Files,
  filePath: string,
  settings: StaticSettings,
): Promise<Languages> {
  const isPage = settings.languages.length > 0 && mediaTypeOf(filePath).startsWith('text/html');
  const own = isPage ? languageOf(filePath, settings) : undefined;
  if (!isPage || own !== undefined)
    return { language: own, paths: undefined, vary: undefined, dependencies: [] };
  const paths = new Map<string, string>();
  const dependencies: Dependency[] = [];
  for (const language of settings.languages) {
    const path = `/${language}${filePath}`;
    if (await isServed(files, path, dependencies)) paths.set(language, path);
  }
  const [language] = settings.languages;
  if (paths.size === 0) return { language, paths: undefined, vary: undefined, dependencies };
  return { language, paths, vary: varyOf(settings), dependencies };
}

/** What a page depends on that may be sent in several languages. */
const varyOf = ({ languageCookie }: StaticSettings): string =>
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

/** Adds the headers of a page that was selected by its language. */
export function addLanguageHeaders(
  { req, res }: Pick<RequestTriple, 'req' | 'res'>,
  path: string,
  settings: StaticSettings,
): void {
  addVary(res, varyOf(settings));
  const reference = referenceTo(encodePath(path), req);
  if (reference !== undefined) res.setHeader('Content-Location', reference);
}

/** All languages, those that the client prefers first: by the cookie, then by the header, then by the order of the option. */
export function preferredLanguages(
  { headers }: ConnectRequest,
  { languages, orderLanguages, languageCookie }: StaticSettings,
): readonly string[] {
  const chosen = languageCookie && cookieValue(languageCookie, headers.cookie ?? '');
  const ranges = headers['accept-language'] ?? '';
  return chosen || ranges ? orderLanguages(chosen ? `${chosen},${ranges}` : ranges) : languages;
}

function cookieValue(name: string, cookies: string): string {
  for (const pair of cookies.split(';')) {
    const [key = '', value = ''] = pair.split('=', 2);
    if (key.trim() === name) return decodePart(value.trim().replace(/^"|"$/g, '')) ?? '';
  }
  return '';
}
