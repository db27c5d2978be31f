import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import { findTag } from '../../http/conditions/entity-tags.ts';
import { parseAcceptEncoding } from '../../http/negotiation/accept-encoding.ts';
import { cacheByHeader } from '../../http/negotiation/text-cache.ts';
import { noteNoDictionaries } from '../../logging/notices.ts';
import { encodedRepresentation } from '../compression/compressed-codings.ts';
import type { Compressor, Work } from '../compression/compressor.ts';
import { RootDirectory } from '../disk/root-directory.ts';
import type { DeltaCodings, DeltaFactory, FileContent, SelectionRules } from '../file/loaded-file.ts';
import type { Representation } from '../file/representation.ts';
import {
  availableCodings,
  type DictionaryCoding,
  dictionaryEncodingId,
  encodeWithDictionary,
} from './dictionary-encoders.ts';
import { type DictionaryFile, DictionaryFiles } from './dictionary-files.ts';
import { patternOf, splitPath } from './file-name.ts';

/** A structured field with a byte sequence of 32 bytes (RFC 9842 §2.2). */
const AVAILABLE_DICTIONARY = /^\s*:([A-Za-z0-9+/]{43}=):\s*$/;
/** A structured field with a string: the name of a file. */
const DICTIONARY_ID = /^\s*"([\w.~-]{1,255})"\s*$/;
const HASH_IN_KEY = 12;

interface Context {
  readonly compressor: Compressor;
  readonly files: DictionaryFiles;
  /** Selects the coding for a value of `Accept-Encoding`. */
  readonly codingFor: (acceptEncoding: string) => DictionaryCoding | undefined;
}

/** The dictionary that the client has, and the coding to use with it. */
interface Announced {
  readonly hash: string;
  readonly id: string;
  readonly coding: DictionaryCoding;
}

/** The codings of one loaded file that use earlier versions of the file as dictionaries. */
class FileDeltas implements DeltaCodings {
  readonly #context: Context;
  readonly #content: FileContent;
  readonly #identity: Representation;
  readonly #folder: string;
  readonly #pattern: string | undefined;

  constructor(context: Context, filePath: string, content: FileContent, identity: Representation) {
    const { folder, name } = splitPath(filePath);
    this.#context = context;
    this.#content = content;
    this.#identity = identity;
    this.#folder = folder;
    this.#pattern = patternOf(name);
  }

  /** Returns undefined if the client has no known dictionary, or while the result is not ready. */
  select({ headers, method }: IncomingMessage, rules: SelectionRules): Representation | undefined {
    const known = headers['if-none-match'];
    if (known !== undefined && !rules.hasOtherEtag && this.#includesContent(known)) {
      const tag = this.#findTag(known);
      return tag === undefined ? undefined : encodedRepresentation(this.#identity, 'dcb', tag, undefined);
    }
    if (headers['available-dictionary'] === undefined) return undefined;
    // A range of a compressed body would be of little use, because only its whole is cached.
    if (headers.range !== undefined && method === 'GET' && rules.acceptsRanges) return undefined;
    const announced = this.#announcedBy(headers);
    return announced && this.#encode(announced);
  }

  /** Whether an ETag of this content, in any coding, is in the list: then the response may be a 304. */
  #includesContent(known: string): boolean {
    const { tag } = this.#identity;
    return tag !== undefined && known.includes(tag.slice(tag.indexOf('"'), -1));
  }

  /** Finds an ETag of this content in a coding with a dictionary, as the condition of the request will find it. */
  #findTag(known: string): string | undefined {
    const base = this.#identity.tag?.slice(0, -1);
    return findTag(known, (tag) => tag.startsWith(`${base}-dc`));
  }

  #announcedBy(headers: IncomingHttpHeaders): Announced | undefined {
    // Only pages of the same origin may read the result anyway; the requests of others would cost work.
    const site = headers['sec-fetch-site'];
    if (site !== undefined && site !== 'same-origin') return undefined;
    const { 'accept-encoding': accepted, 'available-dictionary': hashes, 'dictionary-id': ids } = headers;
    const hash = AVAILABLE_DICTIONARY.exec(String(hashes))?.[1];
    const id = DICTIONARY_ID.exec(String(ids))?.[1];
    if (hash === undefined || id === undefined || typeof accepted !== 'string') return undefined;
    const coding = this.#context.codingFor(accepted);
    if (coding === undefined || patternOf(id) !== this.#pattern) return undefined;
    return { hash, id, coding };
  }

  #encode({ hash, id, coding }: Announced): Representation | undefined {
    const { compressor, files } = this.#context;
    const path = this.#folder + id;
    const file = files.find(path, hash);
    if (file === undefined) return undefined;
    const { etag } = this.#content;
    const suffix = `${dictionaryEncodingId(coding)}-${hash.slice(0, HASH_IN_KEY)}`;
    const body = compressor.get(`${etag.slice(1, -1)}-${suffix}`, this.#workFor(coding, path, file));
    if (body === undefined || body === 'useless') return undefined;
    const tag = this.#identity.tag?.replace(/"$/, `-${suffix}"`);
    return encodedRepresentation(this.#identity, coding, tag, body);
  }

  #workFor(coding: DictionaryCoding, path: string, file: DictionaryFile): Work {
    const { files } = this.#context;
    return {
      content: this.#content,
      expectedRatio: 0.05,
      // A larger result would not be much smaller than one without a dictionary.
      maxRatio: 0.2,
      encode: async (bytes) => {
        const dictionary = await files.read(path, file);
        return dictionary && encodeWithDictionary(bytes, coding, dictionary, file.hash);
      },
    };
  }
}

/**
 * Creates the factory of codings with dictionaries for the files of a directory. Undefined if the option
 * `compress.dictionaries` is off, or if this version of Node cannot compress with dictionaries.
 */
export function createDeltas(compressor: Compressor, root: RootDirectory): DeltaFactory | undefined {
  const { dictionaries, maxFileBytes } = compressor.settings;
  if (dictionaries === undefined) return undefined;
  const codings = availableCodings();
  if (codings.length === 0) {
    noteNoDictionaries(process.version);
    return undefined;
  }
  const roots = [root, ...dictionaries.previous.map((path) => new RootDirectory(path))];
  const context = {
    compressor,
    files: new DictionaryFiles(roots, maxFileBytes, (key, task) => compressor.schedule(key, task)),
    codingFor: cacheByHeader((header) => bestCoding(header, codings)),
  };
  return {
    headerFor: (filePath, cacheControl) => {
      const { name } = splitPath(filePath);
      const pattern = patternOf(name);
      if (pattern === undefined || !isPublicAndImmutable(cacheControl)) return undefined;
      // The pattern is relative to the URL of the file, so it is right below every mount path and proxy.
      return `match="${pattern}", id="${name}"`;
    },
    create: (filePath, content, identity) => new FileDeltas(context, filePath, content, identity),
  };
}

/** A delta to a private file could reveal its content, and one to a changing file has no fresh dictionary. */
function isPublicAndImmutable(cacheControl = ''): boolean {
  return /\bimmutable\b/.test(cacheControl) && !/\b(?:private|no-store)\b/.test(cacheControl);
}

/** `*` in the header does not include these codings: a client without the dictionary may send it. */
function bestCoding(header: string, codings: readonly DictionaryCoding[]): DictionaryCoding | undefined {
  const weightOf = parseAcceptEncoding(header);
  const named = header.toLowerCase();
  return codings
    .filter((coding) => named.includes(coding) && weightOf(coding) > 0)
    .sort((a, b) => weightOf(b) - weightOf(a))[0];
}
