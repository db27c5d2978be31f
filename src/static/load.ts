import type { Precompressed } from '../../types/static.ts';
import { debug } from '../diagnostics/logging.ts';
import { joinVary } from '../http/reply.ts';
import { type LoadedFile, type LoadResult, type Moved, maxBodyBytes } from './cache.ts';
import type { PageMaker, RenderedPage } from './capabilities.ts';
import { CompressedCodings, type Compressor } from './compress.ts';
import { COPY_EXTENSIONS, compareCopy } from './copies.ts';
import {
  type Dependency,
  type Files,
  type NotFound,
  notFound,
  type OpenedFile,
  type PathStat,
  type Snapshot,
  withOpen,
} from './files.ts';
import { etagOfBytes } from './hash.ts';
import { findLanguages, varyOf } from './languages.ts';
import { mediaTypeOf } from './media-types.ts';
import type { StaticSettings } from './options.ts';
import { mayBePage, segmentOf } from './path.ts';
import { etagForCoding, type Metadata, Representation } from './representation.ts';
import { isNotFoundError, isPermissionError, isStaleError } from './root.ts';
import type { AddedHeaders, Rules } from './rules.ts';
import { untrustedFile } from './untrusted.ts';
import { findVariants } from './variants.ts';
import {
  etagOfVersion,
  type FileVersion,
  fileVersionOf,
  isRacilyClean,
  lastModifiedOf,
  sameContent,
  versionId,
} from './version.ts';

const MAX_ATTEMPTS = 16;
// Files up to this size are hashed before the first response, larger ones in the background.
const MAX_EAGER_HASH_BYTES = 8 << 20;
// Shared by all files without compressed copies.
const NONE: readonly Representation[] = [];

export interface LoadOptions {
  /** Whether the file is requested so often that a large body is cached too. */
  readonly isPopular: boolean;
  readonly compressor?: Compressor | undefined;
  readonly pages?: PageMaker | undefined;
  readonly rules?: Rules | undefined;
  /** Whether the whole body is needed, whatever its size. */
  readonly needsBody?: boolean;
}

/** Resolves, opens, reads and hashes the file for a URL path. Repeats this if the file changes meanwhile. */
export async function loadFile(
  files: Files,
  urlPath: string,
  settings: StaticSettings,
  options: LoadOptions,
): Promise<LoadResult> {
  for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
    try {
      // A file that is written all the time would never be read as a whole: then large bodies are streamed.
      const current = attempt === 0 ? options : { ...options, isPopular: false };
      const result = await loadOnce(files, urlPath, settings, current);
      if (result !== undefined) return result;
    } catch (error) {
      // The file was deleted or replaced between two steps; the next attempt resolves the path again.
      if (!isNotFoundError(error) && !isStaleError(error)) throw error;
      if (isPermissionError(error)) return notFound('no permission to read the file');
    }
  }
  return { kind: 'busy' };
}

/**
 * Whether the paths of a loaded file still lead to the same real paths. A stat of the files cannot show that
 * one of their directories was moved and replaced by a link to its new place.
 */
export async function stillResolves(files: Files, file: LoadedFile): Promise<boolean> {
  for (const { path, realPath } of [file.uncompressed, ...file.precompressed]) {
    if (!(await files.resolvesTo(path, realPath))) return false;
  }
  return true;
}

async function loadOnce(
  files: Files,
  urlPath: string,
  settings: StaticSettings,
  options: LoadOptions,
): Promise<LoadResult | undefined> {
  const found = await findFile(files, urlPath, settings);
  if (found.kind !== 'file') return found;
  const file = await files.open(found.path, found.version);
  if (file?.kind !== 'opened') return file;
  try {
    const needsBody = options.pages?.accepts(found.path) === true;
    const snapshot = await takeSnapshot(file, settings, needsBody ? { ...options, needsBody } : options);
    if (snapshot === 'not-a-file') return notFound('not a regular file');
    return snapshot && (await assemble({ files, found, file, snapshot, settings, options }));
  } finally {
    file.close();
  }
}

interface Parts {
  readonly files: Files;
  readonly found: FoundFile;
  readonly file: OpenedFile;
  readonly snapshot: Snapshot;
  readonly settings: StaticSettings;
  readonly options: LoadOptions;
}

async function assemble(parts: Parts): Promise<LoadedFile> {
  const { files, found, file, snapshot, settings, options } = parts;
  const content = await contentOf(parts);
  const { copies, page, size } = content;
  const tried = [...content.dependencies];
  const { language, paths } = await findLanguages(files, found.filePath, settings, tried);
  for (const [each, path] of paths ?? [])
    paths?.set(each, await urlPathOf({ files, settings, dependencies: tried }, path, path));
  const variants = await findVariants(files, found.filePath, settings, tried);
  const { rules, ...described } = describe(parts, page, language);
  const mayCompress = content.snapshot.contentEtag !== undefined;
  const compressor =
    mayCompress && options.compressor?.accepts(described.type, size) ? options.compressor : undefined;
  const codings = compressor !== undefined || copies.length > 0 ? 'Accept-Encoding' : undefined;
  const vary = joinVary(codings, rules?.vary, paths && varyOf(settings));
  const common = { ...described, vary, acceptRanges: true };
  const snapshots = [snapshot, ...copies.map((copy) => copy.snapshot)];
  // Depends on the version that was read, not on that of the first stat: the file may have been replaced in
  // between.
  const shown = { path: found.path, realPath: file.realPath, snapshot: content.snapshot, coding: undefined };
  const uncompressed = representationOf(shown, common, settings, size);
  return {
    kind: 'file',
    dependencies: [...found.dependencies, uncompressed, ...tried],
    uncompressed,
    page: page?.additions,
    watched: [rules, page?.additions].filter((each) => each !== undefined),
    variants,
    languages: paths,
    createdCodings: compressor && createdCodingsOf(parts, content, uncompressed, compressor),
    precompressed:
      copies.length === 0 ? NONE : copies.map((copy) => representationOf(copy, common, settings)),
    stats: snapshot.stats,
    isRacilyClean: snapshots.some((read) => read.isRacilyClean) || content.dependencies.some(isRecent),
    changedAt: Math.max(...snapshots.map(changedAt)),
  };
}

/** What the options say about a file: its type and headers, those of `untrusted` before those of `rules`. */
function describe(
  { found, settings, options }: Parts,
  page: RenderedPage | undefined,
  language: string | undefined,
): Pick<Metadata, 'type' | 'cacheControl' | 'added'> & { rules: AddedHeaders | undefined } {
  const rules = options.rules?.headersFor(found.urlPath);
  const untrusted = settings.untrusted ? untrustedFile(found.path) : undefined;
  const headers =
    page === undefined ? rules?.headers : page.additions.headersWith(page.headers, rules?.headers);
  // In lower case as those of rules, of which one may say the same.
  const isSaid = language === undefined || headers?.includes('content-language');
  const added = isSaid ? headers : [...(headers ?? []), 'content-language', language];
  return {
    type: untrusted?.type ?? rules?.type ?? mediaTypeOf(found.path),
    cacheControl: rules?.cacheControl ?? settings.cacheControl(found.filePath),
    added: untrusted?.headers ?? added,
    rules,
  };
}

const changedAt = ({ version }: Snapshot): number => Number(version.ctimeNs / 1_000_000n);

const isRecent = ({ version }: Dependency): boolean =>
  version !== undefined && isRacilyClean(version, Date.now());

/** What a file is sent as: its bytes with their copies, or the page that is made of them. */
interface Content {
  readonly snapshot: Snapshot;
  readonly size: number;
  /** Files whose stat decided the result. */
  readonly dependencies: readonly Dependency[];
  readonly copies: readonly FileToRepresent[];
  readonly page: RenderedPage | undefined;
}

async function contentOf(parts: Parts): Promise<Content> {
  const { found, snapshot, settings, options } = parts;
  const { pages } = options;
  if (pages === undefined || snapshot.body === undefined || !pages.accepts(found.path)) {
    const copies = await findPrecompressed(parts);
    const size = Number(snapshot.version.size);
    return { snapshot, size, dependencies: copies.dependencies, copies: copies.files, page: undefined };
  }
  const page = await pages.render(found.filePath, snapshot.body, settings.urls && found.urlPath);
  const { body, etag: contentEtag, dependencies } = page;
  const etag = settings.etag === 'none' ? undefined : contentEtag;
  // The time of the file does not change with the page. Its compressed copies are not copies of the page.
  const made = { ...snapshot, body, etag, contentEtag, modified: undefined };
  return { snapshot: made, size: body.length, dependencies, copies: [], page };
}

function representationOf(
  { path, realPath, coding, snapshot: { version, body, etag, modified } }: FileToRepresent,
  common: Omit<Metadata, 'size' | 'coding'>,
  settings: StaticSettings,
  size: number = Number(version.size),
): Representation {
  const { type, cacheControl, vary, acceptRanges, added } = common;
  return new Representation(
    { coding, type, size, cacheControl, vary, acceptRanges, added },
    { path, realPath, version, body },
    {
      tag: etag && etagForCoding(etag, coding),
      modified,
      ambiguousUntil: modified !== undefined && settings.etag === 'content' ? modified + 1000 : 0,
    },
  );
}

/** A regular file that a URL path leads to. It may still be outside the root. */
interface FoundFile {
  readonly kind: 'file';
  readonly path: string;
  /** The path below the root, with slashes: for `/dir/` it is `/dir/index.html`. */
  readonly filePath: string;
  readonly urlPath: string;
  readonly version: FileVersion;
  /**
   * Paths that were tried before and do not lead to a file. When one of them changes, the URL path may lead
   * elsewhere.
   */
  readonly dependencies: readonly Dependency[];
}

/** A search for the file of a URL path, with the paths whose stat decides the result. */
interface Search {
  readonly files: Files;
  readonly settings: StaticSettings;
  readonly dependencies: Dependency[];
}

/** Finds the file for a URL path: the path itself, an index file for `dir/`, or the path with an extension added. */
async function findFile(
  files: Files,
  urlPath: string,
  settings: StaticSettings,
): Promise<FoundFile | { readonly kind: 'directory' } | Moved | NotFound> {
  const search: Search = { files, settings, dependencies: [] };
  let isDirectory = false;
  let reason = 'no such file';
  let lastError: Error | undefined;
  for (const filePath of candidatesFor(urlPath, settings)) {
    const found = await statIn(search, filePath, (error) => {
      lastError = error;
    });
    if (found === undefined) continue;
    if (found.kind === 'file') {
      const to = await urlPathOf(search, filePath, urlPath);
      if (to !== urlPath) return { kind: 'moved', to };
      const { dependencies } = search;
      return {
        kind: 'file',
        path: files.pathOf(filePath),
        filePath,
        urlPath,
        version: found.version,
        dependencies,
      };
    }
    reason = 'not a regular file';
    if (found.kind !== 'directory' || filePath !== urlPath) continue;
    reason = 'a directory';
    isDirectory = true;
    // With a folder of the same name, the page is used for the folder's path unless the folder has an index
    // file.
    if (!settings.cleanUrls && (await hasIndex(search, urlPath))) break;
  }
  return isDirectory && settings.html ? { kind: 'directory' } : notFound(reason, lastError);
}

/** Stats a path. What is no file there may become one. */
async function statIn(
  { files, dependencies }: Search,
  filePath: string,
  onNothing?: (error: Error) => void,
): Promise<PathStat | undefined> {
  const path = files.pathOf(filePath);
  const found = await files.stat(path, onNothing);
  if (found?.kind !== 'file') dependencies.push({ path, version: found?.version });
  return found;
}

/** Returns the paths to try for a URL path, in order. */
function candidatesFor(urlPath: string, settings: StaticSettings): readonly string[] {
  const { index, extensions, urls } = settings;
  const isFolder = urlPath.endsWith('/');
  const path = isFolder ? urlPath.slice(0, -1) : urlPath;
  const ofFolder = index.map((name) => `${path}/${name}`);
  if (isFolder && (urls === undefined || !mayBePage(path) || path === '')) return ofFolder;
  if (!isFolder && (extensions.length === 0 || !mayBePage(path))) return [urlPath];
  const pages = extensions.map((extension) => path + extension);
  if (isFolder) return [...ofFolder, ...pages];
  return urls === undefined ? [urlPath, ...pages] : [urlPath, ...pages, ...ofFolder];
}

/**
 * The one URL path of a file with the settings `urls`: that with or without a slash, unless another page has it.
 *
 * @param urlPath - the path that has led to the file
 */
async function urlPathOf(search: Search, filePath: string, urlPath: string): Promise<string> {
  const { urls, index } = search.settings;
  if (urls === undefined) return urlPath;
  const name = segmentOf(filePath);
  const stem = index.includes(name) ? filePath.slice(0, -name.length - 1) : filePath.replace(/\.html$/, '');
  if (stem === filePath) return urlPath.endsWith('/') ? filePath : urlPath;
  const choices = urls === 'slash' ? [`${stem}/`, stem] : [stem, `${stem}/`];
  for (const choice of stem === '' ? ['/'] : choices)
    if (choice === urlPath || (await leadsTo(search, choice, filePath))) return choice;
  return filePath;
}

/** Whether a file is the first of those that a URL path may lead to. */
async function leadsTo(search: Search, urlPath: string, filePath: string): Promise<boolean> {
  for (const candidate of candidatesFor(urlPath, search.settings)) {
    if (candidate === filePath) return true;
    const found = await statIn(search, candidate);
    if (found?.kind !== 'file') continue;
    search.dependencies.push({ path: search.files.pathOf(candidate), version: found.version });
    return false;
  }
  return false;
}

/** Whether a folder has an index file. Skips the check if no extension can lead to another file. */
async function hasIndex(search: Search, urlPath: string): Promise<boolean> {
  const { extensions, index } = search.settings;
  if (extensions.length === 0) return true;
  for (const name of index) if ((await statIn(search, `${urlPath}/${name}`))?.kind === 'file') return true;
  return false;
}

/** Reads one version of an open file, with its bytes when it is small; undefined when the file changed meanwhile. */
export async function takeSnapshot(
  file: OpenedFile,
  settings: StaticSettings,
  options: LoadOptions,
): Promise<Snapshot | 'not-a-file' | undefined> {
  const before = await file.version();
  if (before === undefined) return 'not-a-file';
  const isRacily = isRacilyClean(before, Date.now());
  const stats = settings.setHeaders === undefined ? undefined : await file.stats();
  const content = await readContent(file, before, isRacily, settings, options);
  const after = await file.version();
  if (content === undefined || after === undefined || !sameContent(before, after)) return undefined;
  const modified = settings.lastModified ? lastModifiedOf(before) : undefined;
  return { ...content, version: fileVersionOf(before), modified, stats, isRacilyClean: isRacily };
}

/** Reads and hashes as much of a file as the settings and its size demand; undefined if it has become shorter. */
async function readContent(
  file: OpenedFile,
  version: FileVersion,
  isRacily: boolean,
  settings: StaticSettings,
  options: LoadOptions,
): Promise<Pick<Snapshot, 'body' | 'etag' | 'contentEtag'> | undefined> {
  const size = Number(version.size);
  const { cache, etag: kind } = settings;
  const maxBytes = Math.min(maxBodyBytes(options.isPopular), cache.maxBytes ?? Number.POSITIVE_INFINITY);
  const isCached = options.needsBody === true || size <= maxBytes;
  const body = isCached ? await file.read(size) : undefined;
  // Another write could leave the timestamps of a racily clean file unchanged: the response might stream
  // other bytes than the hashed bytes.
  const mayHash = isCached || (size <= MAX_EAGER_HASH_BYTES && !isRacily);
  const isHashed = mayHash && (kind === 'content' || options.compressor !== undefined);
  const contentEtag = !isHashed
    ? undefined
    : body === undefined
      ? await file.hash(size)
      : await etagOfBytes(body);
  if ((isCached && body === undefined) || (isHashed && contentEtag === undefined)) return undefined;
  const isByVersion = kind === 'stat' || (kind === 'content' && !isHashed && !file.isOnDisk);
  const etagByVersion = isByVersion
    ? etagOfVersion(version, { weak: kind === 'stat' && isRacily })
    : undefined;
  return { body, contentEtag, etag: kind === 'content' && isHashed ? contentEtag : etagByVersion };
}

/** A file, or a compressed copy of it in the same directory. */
interface FileToRepresent {
  readonly coding: Precompressed | undefined;
  readonly path: string;
  readonly realPath: string;
  readonly snapshot: Snapshot;
}

/** Finds the compressed copies of a file in the order of the option, and all paths whose stat decided the result. */
async function findPrecompressed(
  parts: Parts,
): Promise<{ files: FileToRepresent[]; dependencies: Dependency[] }> {
  const { files, file, snapshot, settings } = parts;
  const copies: FileToRepresent[] = [];
  const dependencies: Dependency[] = [];
  let source: Snapshot | undefined;
  for (const coding of settings.precompressed) {
    const copyPath = parts.found.path + COPY_EXTENSIONS[coding];
    const found = await files.stat(copyPath);
    if (found?.kind !== 'file') {
      dependencies.push({ path: copyPath, version: found?.version });
      continue;
    }
    source ??= await identify(file, snapshot);
    const result = await readCopy(parts, copyPath, found.version, coding, source);
    if (typeof result === 'string') {
      debug.static('the compressed copy %s is ignored: %s', copyPath, result);
      dependencies.push({ path: copyPath, version: found.version });
    } else {
      dependencies.push({ path: copyPath, version: result.snapshot.version });
      copies.push({ coding, path: copyPath, ...result });
    }
  }
  return { files: copies, dependencies };
}

/** Hashes a file that has a copy, whatever its ETag is made of: modification times do not prove that both belong together. */
async function identify(file: OpenedFile, snapshot: Snapshot): Promise<Snapshot> {
  const { contentEtag, body, version, isRacilyClean: isRacily } = snapshot;
  if (contentEtag !== undefined) return snapshot;
  if (body !== undefined) return { ...snapshot, contentEtag: await etagOfBytes(body) };
  const size = Number(version.size);
  if (isRacily || size > MAX_EAGER_HASH_BYTES) return snapshot;
  const hash = await file.hash(size);
  const after = await file.version();
  const isSame = after !== undefined && versionId(after) === versionId(version);
  // A file that has changed meanwhile has no copy. Without a hash it would be compared by its times.
  return { ...snapshot, contentEtag: (isSame && hash) || '' };
}

/** Reads a compressed copy; returns the reason if it cannot be used, so that the file itself is sent. */
async function readCopy(
  { files, settings, options }: Parts,
  path: string,
  version: FileVersion,
  coding: Precompressed,
  source: Snapshot,
): Promise<{ realPath: string; snapshot: Snapshot } | string> {
  try {
    const result = await withOpen(files, path, version, async (file) => {
      const copy = await takeSnapshot(file, settings, options);
      if (copy === undefined) return 'it changed while it was read';
      if (copy === 'not-a-file') return 'it is not a regular file';
      const mismatch = await compareCopy({ file, copy, coding, source });
      return mismatch ?? { realPath: file.realPath, snapshot: copy };
    });
    return result ?? 'it was moved, or is outside the root';
  } catch (error) {
    if (isPermissionError(error)) return 'no permission to read it';
    throw error;
  }
}

/** The codings of a file that are created while it is served; undefined for one with compressed copies. */
function createdCodingsOf(
  { files }: Parts,
  { size, copies, page, snapshot: { contentEtag: etag } }: Content,
  identity: Representation,
  compressor: Compressor,
): CompressedCodings | undefined {
  if (copies.length > 0 || etag === undefined) return undefined;
  // A page is not in a file: it is compressed while it is in memory.
  const read = page ? async () => identity.body : () => readAgain(files, identity, etag);
  return new CompressedCodings(compressor, { size, etag, read }, identity);
}

/** Reads a file again; undefined if its content has changed. */
function readAgain(
  files: Files,
  { path, version, metadata }: Representation,
  etag: string,
): Promise<Buffer | undefined> {
  return withOpen(files, path, version, async (file) => {
    const body = await file.read(metadata.size);
    return body !== undefined && (await etagOfBytes(body)) === etag ? body : undefined;
  });
}
