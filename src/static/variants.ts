import type { ConnectRequest } from '../../types/connect.ts';
import type { Variant as VariantName } from '../../types/static.ts';
import { acceptedTypes } from '../http/negotiation.ts';
import { addVary } from '../http/reply.ts';
import { type Dependency, type Files, withOpen } from './files.ts';
import { mediaTypeOf } from './media-types.ts';
import type { StaticSettings } from './options.ts';
import { isHidden, isServedName, requestedPath, segmentOf } from './path.ts';
import type { Metadata } from './representation.ts';
import type { FileRequest } from './request.ts';
import { isPermissionError } from './root.ts';

/** A file beside another one that shows the same in another format. */
export interface Variant {
  /** The path below the root. */
  readonly path: string;
  readonly type: string;
}

/** What a file is, for which a variant may exist. No image in pixels replaces one that has every size. */
const ORIGINALS: Readonly<Record<VariantName, RegExp>> = {
  md: /^text\/html/,
  avif: /^image\/(?!svg)/,
  webp: /^image\/(?!svg)/,
};

/**
 * Finds the variants of a file in the order of the option, the file itself among them if it has such a format. Adds the paths
 * whose stat decided to `dependencies`.
 */
export async function findVariants(
  files: Files,
  filePath: string,
  settings: StaticSettings,
  dependencies: Dependency[],
): Promise<readonly Variant[] | undefined> {
  const variants: Variant[] = [];
  const original = mediaTypeOf(filePath);
  const stem = filePath.replace(/\.[^./]*$/, '');
  for (const extension of settings.variants) {
    if (!ORIGINALS[extension].test(original)) continue;
    for (const path of [`${stem}.${extension}`, `${filePath}.${extension}`]) {
      if (path === filePath) {
        // The order of the option holds for the file too: an AVIF is not answered with a WebP of the same weight.
        variants.push({ path, type: essenceOf(original) });
        break;
      }
      // The rules of a request path hold for a path that is derived from one.
      if (isHidden(path, settings) || !isServedName(segmentOf(path), settings)) continue;
      if (!(await isServed(files, path, dependencies))) continue;
      variants.push({ path, type: essenceOf(mediaTypeOf(path)) });
      break;
    }
  }
  return variants.some(({ path }) => path !== filePath) ? variants : undefined;
}

/** Whether there is a file that can be opened, and is not outside the root. Adds its path to those that decided. */
export async function isServed(files: Files, filePath: string, dependencies: Dependency[]): Promise<boolean> {
  const path = files.pathOf(filePath);
  const found = await files.stat(path);
  dependencies.push({ path, version: found?.version });
  if (found?.kind !== 'file') return false;
  try {
    return (await withOpen(files, path, found.version, async () => true)) === true;
  } catch (error) {
    if (isPermissionError(error)) return false;
    throw error;
  }
}

/**
 * Selects the variant that a client names in `Accept` and prefers at least as much as the file. Adds the headers of the
 * negotiation to the response.
 *
 * @param metadata - that of the file
 */
export function selectVariant(
  { req, res, entry }: FileRequest,
  variants: readonly Variant[],
  { type, added = [] }: Metadata,
): Variant | undefined {
  addVary(res, 'Accept');
  const best = bestOf(variants, essenceOf(type), req.headers.accept);
  if (best !== undefined) {
    const reference = referenceTo(best, req, entry.urlPath);
    if (reference !== undefined) res.setHeader('Content-Location', reference);
    return best;
  }
  for (const variant of variants.filter(({ type }) => type === 'text/markdown')) {
    const reference = referenceTo(variant, req, entry.urlPath);
    if (reference === undefined) continue;
    const link = `<${reference}>; rel="alternate"; type="text/markdown"`;
    const given = res.getHeader('Link') ?? added.find((_, at) => at % 2 === 1 && added[at - 1] === 'link');
    res.setHeader('Link', given === undefined ? link : [given, link].flat().map(String));
  }
  return undefined;
}

function bestOf(
  variants: readonly Variant[],
  original: string,
  accept: string | undefined,
): Variant | undefined {
  // Browsers accept all types. A client has to name the type of a variant.
  if (accept === undefined) return undefined;
  const weightOf = acceptedTypes(accept);
  let least = weightOf(original).quality;
  let best: Variant | undefined;
  for (const variant of variants) {
    const { quality, isNamed } = weightOf(variant.type);
    if (!isNamed || quality === 0 || quality < least || (best !== undefined && quality === least)) continue;
    least = quality;
    best = variant;
  }
  return best?.type === original ? undefined : best;
}

/**
 * A reference from the URL that the client asked for to a file beside the one that it names: it is right behind every proxy.
 * Undefined if middleware has given the request another name, beside which the client finds nothing.
 */
function referenceTo({ path }: Variant, req: ConnectRequest, urlPath: string): string | undefined {
  const name = encodeURIComponent(segmentOf(path));
  const asked = requestedPath(req);
  const served = segmentOf(urlPath);
  if (segmentOf(asked) === served) return `./${name}`;
  if (served === '') return `./${encodeURIComponent(segmentOf(asked))}/${name}`;
  return asked.endsWith('/') && segmentOf(asked.slice(0, -1)) === served ? `../${name}` : undefined;
}

const essenceOf = (type: string): string => type.split(';', 1)[0] as string;
