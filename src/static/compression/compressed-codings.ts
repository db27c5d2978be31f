import type { IncomingMessage } from 'node:http';
import type { Precompressed } from '../../../types/static.ts';
import { listMatchesWeakly } from '../../http/conditions/entity-tags.ts';
import type { EncodingWeights } from '../../http/negotiation/accept-encoding.ts';
import type {
  CodingFactory,
  CreatedCodings,
  DeltaFactory,
  FileContent,
  SelectionRules,
} from '../file/loaded-file.ts';
import { Representation } from '../file/representation.ts';
import { type Compressor, keyFor, type Preferences, type Work, workFor } from './compressor.ts';
import { isCompressibleType } from './media-types.ts';

/** One coding that a file may be sent in. */
interface Candidate {
  readonly coding: Precompressed;
  /** Identifies the bytes in the compressor. */
  readonly key: string;
  readonly tag: string | undefined;
  readonly work: Work;
}

/** The codings of one loaded file, which are compressed when a client first prefers them. */
class CompressedCodings implements CreatedCodings {
  readonly #work: { readonly compressor: Compressor; readonly content: FileContent };
  readonly #identity: Representation;
  #candidates: readonly Candidate[] | undefined;

  /** @param identity - the representation of the file itself */
  constructor(compressor: Compressor, content: FileContent, identity: Representation) {
    this.#work = { compressor, content };
    this.#identity = identity;
  }

  /** A coding is selected when its bytes are ready, or when the client has them already and gets a 304. */
  select({ headers, method }: IncomingMessage, rules: SelectionRules): Representation | undefined | 'none' {
    const header = headers['accept-encoding'];
    if (typeof header !== 'string') return undefined;
    const preferences = this.#work.compressor.preferencesOf(header);
    const { weightOf, identityWeight } = preferences;
    // A range of a compressed body would be of little use, because only its whole is cached.
    if (headers.range !== undefined && method === 'GET' && rules.acceptsRanges && identityWeight > 0)
      return undefined;
    const known = headers['if-none-match'];
    if (known !== undefined && !rules.hasOtherEtag) {
      const current = this.#findKnown(known, weightOf);
      if (current !== undefined) return current;
      const { tag } = this.#identity;
      if (identityWeight > 0 && tag !== undefined && listMatchesWeakly(known, tag)) return undefined;
    }
    return this.#best(preferences);
  }

  /** Finds a coding whose current bytes the client has, as its `If-None-Match` shows. */
  #findKnown(known: string, weightOf: EncodingWeights): Representation | undefined {
    for (const candidate of this.#list()) {
      const { coding, tag } = candidate;
      const isKnown = tag !== undefined && weightOf(coding) > 0 && listMatchesWeakly(known, tag);
      if (isKnown) return this.#represent(candidate, undefined);
    }
    return undefined;
  }

  /**
   * Returns the coding that the client prefers. While it is not ready, another one that is ready, or the file
   * itself.
   */
  #best({ preferred, identityWeight }: Preferences): Representation | undefined | 'none' {
    const { compressor } = this.#work;
    const candidates = this.#list();
    for (const index of preferred) {
      const candidate = candidates[index] as Candidate;
      const { key, work } = candidate;
      const isBest = index === preferred[0];
      const body = isBest ? compressor.get(key, work) : compressor.getReady(key);
      if (body !== undefined && body !== 'useless') return this.#represent(candidate, body);
    }
    return identityWeight > 0 ? undefined : 'none';
  }

  #list(): readonly Candidate[] {
    this.#candidates ??= this.#work.compressor.settings.codings.map((coding) =>
      this.#createCandidate(coding),
    );
    return this.#candidates;
  }

  #createCandidate(coding: Precompressed): Candidate {
    const key = keyFor(coding, this.#work.content);
    const suffix = key.slice(key.lastIndexOf('-'));
    const tag = this.#identity.tag?.replace(/"$/, `${suffix}"`);
    return { coding, key, tag, work: workFor(coding, this.#work.content) };
  }

  #represent({ coding, tag }: Candidate, body: Buffer | undefined): Representation {
    return encodedRepresentation(this.#identity, coding, tag, body);
  }
}

/**
 * Creates the representation of a coding. Only the compressor keeps bodies, so it lives as long as its
 * response.
 */
export function encodedRepresentation(
  { metadata, path, realPath, version, modified }: Representation,
  coding: string,
  tag: string | undefined,
  body: Buffer | undefined,
): Representation {
  return new Representation(
    { ...metadata, coding, size: body?.length ?? 0, acceptRanges: false },
    { path, realPath, version, body },
    { tag, modified },
  );
}

/** Returns the factory that the loader calls for each file without precompressed copies. */
export function createCodingFactory(compressor: Compressor, deltas: DeltaFactory | undefined): CodingFactory {
  const { minBytes, maxFileBytes } = compressor.settings;
  return {
    accepts: (type, size) => size >= minBytes && size <= maxFileBytes && isCompressibleType(type),
    create: (content, identity) => new CompressedCodings(compressor, content, identity),
    deltas,
  };
}
