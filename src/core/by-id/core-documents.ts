import { createPrepare, type Prepare } from '../prepare.ts';
import { selectEngine } from '../select-engine.ts';
import { createTrustedList } from './create-list.ts';
import { prepareFound } from './find-document.ts';
import { type CoreParts, type PersistedQuerySettings, resolveDocuments } from './options.ts';
import { DocumentRecorder } from './persisted/document-recorder.ts';
import { PersistedQueries } from './persisted/persisted-queries.ts';
import { SharedStore } from './persisted/shared-store.ts';
import { createPrepareById, type PrepareTrusted } from './prepare-by-id.ts';
import type { TrustedDocuments } from './trusted/trusted-list.ts';

/** The documents of one core that clients request by id. */
export interface CoreDocuments {
  /** Whether a segment of a path may be the id of a document. */
  isId(segment: string): boolean;
  /** The trusted documents at present; undefined if a function finds them or returns the schema. */
  trusted(): TrustedDocuments | undefined;
}

/** The fraction of `documentCacheBytes` for the texts of automatic persisted queries. */
const PERSISTED_SHARE = 1 / 8;

/** Creates the `prepare` function of one core, and the documents of its option `documents`. */
export function createCoreDocuments(parts: CoreParts): {
  readonly prepare: Prepare;
  readonly documents: CoreDocuments | undefined;
} {
  const { options, engineSettings, report } = parts;
  const engine = selectEngine(options.engine);
  if (options.documents === undefined) {
    return { prepare: createPrepare(engine, engineSettings, options), documents: undefined };
  }
  const settings = resolveDocuments(options.documents);
  const { from, apq, record } = settings;
  const documentCacheBytes = options.documentCacheBytes * (apq === undefined ? 1 : 1 - PERSISTED_SHARE);
  const prepare = createPrepare(engine, engineSettings, { ...options, documentCacheBytes });
  const list = from !== undefined && 'texts' in from ? createTrustedList(from, parts) : undefined;
  const find = from !== undefined && 'find' in from ? prepareFound(from.find, prepare) : undefined;
  const trusted: PrepareTrusted | undefined =
    list && ((id, schema, params, source) => list.prepare(id, schema, params, source));
  return {
    prepare: createPrepareById(settings, {
      prepare,
      trusted: trusted ?? find,
      persisted: apq === undefined ? undefined : createPersisted(apq, prepare, parts),
      recorder: record === undefined ? undefined : new DocumentRecorder(record, report),
    }),
    documents: {
      isId: (segment) => list?.has(segment) === true || find !== undefined || LIKE_A_HASH.test(segment),
      trusted: () => list?.trusted(),
    },
  };
}

/** A hexadecimal hash of at least 128 bits, or an id with a prefix of the specification. */
const LIKE_A_HASH = /^(?:(?:sha256|x-[\w.~-]+):[\w.~-]+|[0-9a-f]{32,128})$/;

function createPersisted(
  apq: PersistedQuerySettings,
  prepare: Prepare,
  { options, report }: CoreParts,
): PersistedQueries {
  const store = apq.store === undefined ? undefined : new SharedStore(apq.store, apq, report);
  const { documentCacheBytes, limits } = options;
  const bytes = documentCacheBytes * PERSISTED_SHARE;
  return new PersistedQueries(prepare, store, { bytes, characters: limits.characters });
}
