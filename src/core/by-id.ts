import { resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { ErrorDetails, MaybePromise } from '../../types/connect.ts';
import type { FindDocument } from '../../types/graphql.ts';
import { type PreparedOperation, type RequestError, withNativePromise } from '../execution/types.ts';
import {
  bytes,
  formatValue,
  isEither,
  isOneOf,
  isPathOrUrl,
  optionError,
  type Rules,
  resolveOptions,
  resolveSwitch,
  rule,
  valueFor,
  wrongReturnValue,
} from '../options/rules.ts';
import { DOCUMENT_OPTIONS, PERSISTED_QUERY_OPTIONS } from '../options/scopes.ts';
import { isBoolean, isFunction, isObject, isString, settle } from '../options/values.ts';
import {
  type DocumentReference,
  documentNotFound,
  documentNotTrusted,
  notFound,
  notSupported,
} from './document-id.ts';
import {
  CACHE_BYTES,
  type CoreParts,
  createPrepare,
  type Prepare,
  type Prepared,
  type PrepareText,
} from './documents.ts';
import { selectEngine } from './engines.ts';
import {
  createPersisted,
  hashQuery,
  type PersistedQueries,
  type PersistedQuerySettings,
  persistedRules,
} from './persisted.ts';
import {
  createTrustedList,
  parseManifest,
  readDocumentsSync,
  type TrustedDocuments,
  type TrustedTexts,
} from './trusted.ts';

/** The documents of one core that clients request by id. */
export interface CoreDocuments {
  /** Whether a segment of a path may be the id of a document. */
  isId(segment: string): boolean;
  /** The trusted documents at present; undefined if a function finds them or returns the schema. */
  trusted(): TrustedDocuments | undefined;
  /** Calls the listener after the files of the trusted documents were read again. */
  onReload(listener: () => void): void;
}

/** The fraction of `documents.cacheBytes` for the texts of automatic persisted queries. */
const PERSISTED_SHARE = 1 / 8;

/** Creates the `prepare` function of one core with the option `documents`, and these documents. */
export function createCoreDocuments(parts: CoreParts): Prepared & { readonly documents: CoreDocuments } {
  const { options, engineSettings } = parts;
  const engine = selectEngine(options.engine);
  const settings = resolveDocuments(options.documents);
  const { from, apq, cacheBytes } = settings;
  const persistedBytes = apq === undefined ? 0 : cacheBytes * PERSISTED_SHARE;
  const prepare = createPrepare(engine, engineSettings, {
    ...options,
    cacheBytes: cacheBytes - persistedBytes,
  });
  const list = from?.kind === 'list' ? createTrustedList(from, parts) : undefined;
  const find = from?.kind === 'function' ? prepareFound(from.find, prepare) : undefined;
  return {
    prepare: createPrepareById(settings, {
      prepare,
      trusted: list ? (id, schema, params, source) => list.prepare(id, schema, params, source) : find,
      persisted: apq === undefined ? undefined : createPersisted(apq, prepare, persistedBytes, parts),
      untrusted: new UntrustedReports(parts.report),
    }),
    documents: {
      isId: (segment) => list?.has(segment) === true || find !== undefined || LIKE_A_HASH.test(segment),
      trusted: () => list?.trusted(),
      onReload: (listener) => list?.onReload(listener),
    },
    warm: async (from, to) => {
      await prepare.warm(from, to);
      await list?.warm(to);
      return () => list?.use(to);
    },
  };
}

/** A hexadecimal hash of at least 128 bits, or an id with a prefix of the specification. */
const LIKE_A_HASH = /^(?:(?:sha256|x-[\w.~-]+):[\w.~-]+|[0-9a-f]{32,128})$/;

/** Prepares the trusted document with an id. Returns undefined for an unknown one. */
type PrepareTrusted = (
  id: string,
  ...args: Parameters<Prepare>
) => MaybePromise<PreparedOperation | RequestError | undefined>;

/** The kinds of documents of one core, as the option `documents` selects them. */
interface DocumentKinds {
  /** Prepares any document by its text. */
  readonly prepare: Prepare;
  readonly trusted: PrepareTrusted | undefined;
  readonly persisted: PersistedQueries | undefined;
  readonly untrusted: UntrustedReports;
}

/** What happens to a document that is not trusted: it runs, is refused, or runs and is reported. */
type Only = boolean | 'report';

/**
 * Creates the `prepare` function of a core with the option `documents`. A trusted id takes precedence over a text.
 */
function createPrepareById(
  { only }: Pick<DocumentSettings, 'only'>,
  { prepare, trusted, persisted, untrusted }: DocumentKinds,
): Prepare {
  const onlyFor = valueFor(DOCUMENT_OPTIONS, 'only', only);
  const unknown = trusted === undefined && persisted === undefined ? notSupported : notFound;

  const prepareOther: Prepare = (schema, params, source) => {
    const mode = onlyFor(source);
    if (mode === 'report') {
      return settle(prepareText(schema, params, source), (prepared) => untrusted.note(prepared, source));
    }
    if (mode) return params.query === '' ? documentNotFound() : documentNotTrusted();
    return prepareText(schema, params, source);
  };

  const prepareText: Prepare = (schema, params, source) => {
    const { document, query } = params;
    if (document !== undefined) {
      const hash = hashOf(document);
      if (persisted !== undefined && hash !== undefined) {
        return persisted.prepare(schema, params, source, hash);
      }
      if (query === '') return unknown(document);
    }
    return prepare(schema, params, source);
  };

  return (schema, params, source) => {
    if (params.document === undefined || trusted === undefined) return prepareOther(schema, params, source);
    const found = trusted(params.document.id, schema, params, source);
    return settle(found, (prepared) => prepared ?? prepareOther(schema, params, source));
  };
}

/** The number of different documents that one core reports. Texts that contain values are all different. */
const MAX_REPORTED = 1000;

/** Reports each document that `documents.only` would refuse, once. */
class UntrustedReports {
  readonly #report: CoreParts['report'];
  readonly #known = new WeakSet<PreparedOperation>();
  readonly #hashes = new Set<string>();

  constructor(report: CoreParts['report']) {
    this.#report = report;
  }

  note(prepared: PreparedOperation | RequestError, source: unknown): PreparedOperation | RequestError {
    if (prepared.kind !== 'error' && !this.#known.has(prepared)) {
      this.#known.add(prepared);
      this.#noteText(prepared, source);
    }
    return prepared;
  }

  #noteText({ source: text, operation }: PreparedOperation, source: unknown): void {
    const hash = hashQuery(text);
    if (this.#hashes.size === MAX_REPORTED || this.#hashes.has(hash)) return;
    this.#hashes.add(hash);
    const operationName = operation.name?.value;
    const last = this.#hashes.size === MAX_REPORTED ? `. The next ones are not reported` : '';
    const subject =
      operationName === undefined ? 'An unnamed document' : `The document of "${operationName}"`;
    const message = `${subject} (sha256:${hash}) is not trusted: documents.only = true would refuse it${last}`;
    // Both have headers and a socket.
    const isWebSocket = isObject(source) && isFunction(source['send']);
    this.#report(Object.assign(new Error(message), { code: 'DOCUMENT_NOT_TRUSTED' }), {
      operationName,
      ...(isWebSocket ? { transport: 'websocket', socket: source } : { request: source }),
    } as Partial<ErrorDetails>);
  }
}

/** The maximum length of an id that is passed to the function of the option. */
const MAX_ID_LENGTH = 512;

/** Finds the texts of trusted documents with a function. The document cache has their prepared form. */
function prepareFound(find: FindDocument, prepare: PrepareText): PrepareTrusted {
  return (id, schema, params, source) => {
    if (id.length > MAX_ID_LENGTH) return undefined;
    const use = (text: unknown): ReturnType<PrepareTrusted> => {
      if (text === undefined || text === null) return undefined;
      if (typeof text !== 'string' || text === '') {
        throw wrongReturnValue(DOCUMENT_OPTIONS, 'from', text, 'the text of a document, or undefined');
      }
      return prepare(schema, params, source, text);
    };
    const found = find(id);
    return settle(withNativePromise(found), use);
  };
}

/** The trusted documents: a list, with the path that it was read from, or a function. */
type TrustedSource =
  | { readonly kind: 'list'; readonly texts: TrustedTexts; readonly path: string | undefined }
  | { readonly kind: 'function'; readonly find: FindDocument };

/** The option `documents` after checks. */
interface DocumentSettings {
  readonly from: TrustedSource | undefined;
  readonly only: Only | ((source: unknown) => Only);
  readonly apq: PersistedQuerySettings | undefined;
  /** The memory for prepared documents. */
  readonly cacheBytes: number;
}

interface Given extends Pick<DocumentSettings, 'only' | 'cacheBytes'> {
  readonly from: unknown;
  readonly apq: unknown;
}

const rules: Rules<Given> = {
  from: rule<unknown>(
    undefined,
    isEither(isPathOrUrl, isObject, isFunction),
    'the path of a file or directory, an object or Map of texts by id, or a function of the id',
  ),
  only: rule<DocumentSettings['only']>(
    false,
    isEither(isBoolean, isOneOf('report'), isFunction),
    "a boolean, 'report', or a function of the request",
  ),
  apq: rule<unknown>(false, isEither(isBoolean, isObject), 'a boolean, or an object of options'),
  cacheBytes: bytes(CACHE_BYTES, { to: Number.POSITIVE_INFINITY }),
};

/**
 * Checks the option `documents`, and reads the trusted documents.
 *
 * @throws TypeError (code `ERR_OPTION`).
 */
function resolveDocuments(given: unknown): DocumentSettings {
  const { from, only, apq, cacheBytes } = resolveOptions(DOCUMENT_OPTIONS, given, rules);
  const fail = (message: string): TypeError => optionError(DOCUMENT_OPTIONS, message);
  if (only !== false && from === undefined) {
    throw fail('option "documents.only" needs the documents that it allows; set "documents.from" too');
  }
  if (only === true && apq !== false) {
    throw fail('option "documents.apq" has no effect with "documents.only": true; remove one of them');
  }
  return {
    from: from === undefined ? undefined : sourceOf(from),
    cacheBytes,
    only,
    apq: resolveSwitch(PERSISTED_QUERY_OPTIONS, apq, persistedRules),
  };
}

function sourceOf(from: unknown): TrustedSource {
  if (typeof from === 'function') return { kind: 'function', find: from as FindDocument };
  const path = isString(from) || from instanceof URL ? toPath(from) : undefined;
  try {
    const texts = path === undefined ? parseManifest(from) : readDocumentsSync(path);
    return { kind: 'list', texts, path };
  } catch (error) {
    const { message } = error as Error;
    throw optionError(
      DOCUMENT_OPTIONS,
      `option "documents.from" is ${formatValue(path ?? from)}, which cannot be read: ${message}`,
    );
  }
}

const toPath = (path: string | URL): string => (isString(path) ? resolve(path) : fileURLToPath(path));

const PREFIXED = /^sha256:([0-9a-f]{64})$/;
/** Returns the hash in a reference, which may be malformed in Apollo's protocol; undefined for any other id. */
function hashOf({ id, isPersistedQuery }: DocumentReference): string | undefined {
  return isPersistedQuery ? id : PREFIXED.exec(id)?.[1];
}
