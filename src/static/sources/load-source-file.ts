import type { SourceStat, StaticSource } from '../../../types/sources.ts';
import type { Precompressed } from '../../../types/static.ts';
import { toLastModified } from '../../http/conditions/date.ts';
import { etagOfBytes } from '../disk/hash.ts';
import { isCopyOf } from '../file/compare-copy.ts';
import type { CodingFactory, LoadedFile, LoadResult } from '../file/loaded-file.ts';
import { mediaTypeOf } from '../file/media-type.ts';
import { COPY_EXTENSIONS } from '../file/precompressed.ts';
import { etagForCoding, type Representation } from '../file/representation.ts';
import type { StaticSettings } from '../options.ts';
import { hashAll, readAll, readVerified } from './read-bytes.ts';
import { resolveSourceFile, type SourceDependency, versionOf } from './resolve-source-file.ts';
import { type SourceContent, SourceRepresentation, statsOf, tagOf } from './source-representation.ts';

/** Arguments of `loadSourceFile` in addition to the path. */
export interface SourceLoader {
  readonly source: StaticSource;
  readonly settings: StaticSettings;
  readonly codingFactory: CodingFactory | undefined;
}

/** Finds and reads the file for a URL path. Undefined if it changed meanwhile. */
export async function loadSourceFile(
  loader: SourceLoader,
  urlPath: string,
): Promise<{ result: LoadResult; dependencies: readonly SourceDependency[] } | undefined> {
  const { source, settings } = loader;
  const { found, dependencies } = await resolveSourceFile(source, urlPath, settings);
  if (found.kind !== 'file') return { result: found, dependencies };
  const content = await readContent(loader, found.path, found.stat);
  if (content === undefined) return undefined;
  const copies = await findCopies(loader, content);
  const result = assemble(loader, content, copies);
  return { result, dependencies: [...dependencies, ...copies.dependencies] };
}

/** Reads a file, or hashes it if it is too large for the cache. */
async function readContent(
  { source, settings }: SourceLoader,
  path: string,
  stat: SourceStat,
): Promise<SourceContent | undefined> {
  const { size } = stat;
  const { cache, maxEagerBodyBytes, maxEagerHashBytes } = settings;
  let body: Buffer | undefined;
  let contentEtag: string | undefined;
  if (size <= Math.min(maxEagerBodyBytes, cache.maxBytes ?? Number.POSITIVE_INFINITY)) {
    body = await readAll(source, path, size);
    if (body === undefined) return undefined;
    contentEtag = await etagOfBytes(body);
  } else if (size <= maxEagerHashBytes && settings.etag === 'content') {
    contentEtag = await hashAll(source, path, size);
    if (contentEtag === undefined) return undefined;
  }
  if (versionOf(await source.stat(path)) !== versionOf(stat)) return undefined;
  return { path, stat, body, contentEtag };
}

interface Copies {
  readonly contents: readonly (SourceContent & { readonly coding: Precompressed })[];
  readonly dependencies: readonly SourceDependency[];
}

/** Finds compressed copies. Only copies of files in memory are compared with their source, and used. */
async function findCopies(loader: SourceLoader, { path, body }: SourceContent): Promise<Copies> {
  const contents: (SourceContent & { coding: Precompressed })[] = [];
  const dependencies: SourceDependency[] = [];
  for (const coding of loader.settings.precompressed) {
    const copyPath = path + COPY_EXTENSIONS[coding];
    const stat = await loader.source.stat(copyPath);
    dependencies.push({ path: copyPath, version: versionOf(stat) });
    if (stat === undefined || stat === 'directory' || body === undefined) continue;
    const copy = await readContent(loader, copyPath, stat);
    const isUsable = copy?.body !== undefined && (await isCopyOf(copy.body, body, coding));
    if (isUsable) contents.push({ ...copy, coding });
  }
  return { contents, dependencies };
}

function assemble(loader: SourceLoader, content: SourceContent, copies: Copies): LoadedFile {
  const { settings } = loader;
  const { path, stat, contentEtag } = content;
  const type = mediaTypeOf(path);
  const accepts =
    copies.contents.length === 0 &&
    contentEtag !== undefined &&
    loader.codingFactory?.accepts(type, stat.size);
  const factory = accepts === true ? loader.codingFactory : undefined;
  const common = {
    type,
    cacheControl: settings.cacheControl(path),
    vary: copies.contents.length > 0 || factory !== undefined ? 'Accept-Encoding' : undefined,
    acceptRanges: settings.acceptRanges,
  };
  const represent = (part: SourceContent, coding: Precompressed | undefined): Representation => {
    const tag = tagOf(part, settings);
    const { mtime } = part.stat;
    const modified = settings.lastModified && mtime ? toLastModified(mtime.getTime()) : undefined;
    const metadata = { ...common, coding, size: part.stat.size };
    return new SourceRepresentation(part, metadata, tag && etagForCoding(tag, coding), modified);
  };
  const uncompressed = represent(content, undefined);
  const read = (): Promise<Buffer | undefined> => readVerified(loader.source, path, stat.size, contentEtag);
  return {
    kind: 'file',
    dependencies: [],
    uncompressed,
    precompressed: copies.contents.map((copy) => represent(copy, copy.coding)),
    createdCodings: factory?.create({ etag: contentEtag ?? '', size: stat.size, read }, uncompressed),
    deltas: undefined,
    stats: settings.setHeaders === undefined ? undefined : statsOf(stat),
    canStream: true,
    isRacilyClean: false,
    changedAt: 0,
  };
}
