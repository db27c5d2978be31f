import type { GraphQLSchema } from 'graphql';
import type { PreparedOperation, RequestError } from '../../../execution/types.ts';
import type { LoadedDocument, OperationSelector } from '../../documents/operations.ts';
import type { DocumentParams } from '../../prepare.ts';
import { yieldToEventLoop } from '../../yield-to-event-loop.ts';
import { nameOf, type TrustedText, type TrustedTexts } from './manifest.ts';

/** Validates and prepares trusted documents. */
export interface TrustedLoader extends Pick<OperationSelector, 'select'> {
  /** Validates a document, and prepares all its operations. */
  load(schema: GraphQLSchema, text: string): LoadedDocument | RequestError;
}

/** A trusted document that does not fit the schema, or exceeds a limit. */
export interface UnfitDocument {
  readonly id: string;
  readonly name: string | undefined;
  readonly errors: RequestError['errors'];
}

/** The trusted documents that fit the schema, by id. */
export interface TrustedDocuments {
  readonly schema: GraphQLSchema;
  readonly loaded: ReadonlyMap<string, LoadedDocument>;
}

type Entries = Map<string, LoadedDocument | RequestError>;

/** Trusted documents with what was prepared from them. A reload replaces the whole list. */
class PreparedList {
  readonly texts: TrustedTexts;
  readonly bySchema = new WeakMap<GraphQLSchema, Entries>();
  /** The entries of the last schema; most handlers have one schema. */
  schema: GraphQLSchema | undefined;
  entries: Entries = new Map();

  constructor(texts: TrustedTexts) {
    this.texts = texts;
  }

  entriesOf(schema: GraphQLSchema): Entries {
    if (schema === this.schema) return this.entries;
    let entries = this.bySchema.get(schema);
    if (entries === undefined) {
      entries = new Map();
      this.bySchema.set(schema, entries);
    }
    this.schema = schema;
    this.entries = entries;
    return entries;
  }
}

const PREFIX = 'sha256:';
const NO_TEXT: TrustedText = { text: '', name: undefined };

/** The trusted documents of one core. They are not part of the document cache, so nothing evicts them. */
export class TrustedList {
  readonly #loader: TrustedLoader;
  /** The schema whose documents are prepared in advance; undefined if it depends on the request. */
  readonly #schema: GraphQLSchema | undefined;
  readonly #onUnfit: (unfit: readonly UnfitDocument[]) => void;
  #current: PreparedList;

  constructor(
    texts: TrustedTexts,
    loader: TrustedLoader,
    schema: GraphQLSchema | undefined,
    onUnfit: (unfit: readonly UnfitDocument[]) => void,
  ) {
    this.#loader = loader;
    this.#schema = schema;
    this.#onUnfit = onUnfit;
    this.#current = new PreparedList(texts);
    if (schema === undefined) return;
    const unfit: UnfitDocument[] = [];
    for (const id of texts.keys()) this.#load(this.#current, schema, id, unfit);
    this.#reportUnfit(unfit);
  }

  /** The documents that fit the schema; undefined if the schema depends on the request. */
  trusted(): TrustedDocuments | undefined {
    const schema = this.#schema;
    if (schema === undefined) return undefined;
    const loaded = new Map<string, LoadedDocument>();
    for (const [id, entry] of this.#current.entriesOf(schema))
      if (!('errors' in entry)) loaded.set(id, entry);
    return { schema, loaded };
  }

  has(id: string): boolean {
    return this.#idOf(this.#current.texts, id) !== undefined;
  }

  /**
   * Prepares the document with this id, and sets its text in the parameters. Returns undefined for an unknown id.
   */
  prepare(
    id: string,
    schema: GraphQLSchema,
    params: DocumentParams,
    source: unknown,
  ): PreparedOperation | RequestError | undefined {
    const list = this.#current;
    const entries = list.entriesOf(schema);
    const entry = entries.get(id) ?? this.#loadUnknown(list, schema, id);
    if (entry === undefined) return undefined;
    params.query = 'errors' in entry ? '' : entry.source;
    return this.#loader.select(schema, entry, params.operationName, source);
  }

  /** Validates and prepares other documents, yielding to the event loop, and then replaces the list with them. */
  async replace(texts: TrustedTexts): Promise<void> {
    if (isEqual(texts, this.#current.texts)) return;
    const next = new PreparedList(texts);
    const unfit: UnfitDocument[] = [];
    if (this.#schema !== undefined) {
      for (const id of texts.keys()) {
        await yieldToEventLoop();
        this.#load(next, this.#schema, id, unfit);
      }
    }
    this.#current = next;
    this.#reportUnfit(unfit);
  }

  /** Prepares a document of a schema that depends on the request, or one whose id is spelled differently. */
  #loadUnknown(
    list: PreparedList,
    schema: GraphQLSchema,
    given: string,
  ): LoadedDocument | RequestError | undefined {
    const id = this.#idOf(list.texts, given);
    if (id === undefined) return undefined;
    const known = list.entriesOf(schema).get(id);
    if (known !== undefined) return known;
    const unfit: UnfitDocument[] = [];
    const entry = this.#load(list, schema, id, unfit);
    this.#reportUnfit(unfit);
    return entry;
  }

  /** Returns the id in the list: most manifests have SHA-256 hashes without the prefix of the specification. */
  #idOf(texts: TrustedTexts, id: string): string | undefined {
    if (texts.has(id)) return id;
    const bare = id.startsWith(PREFIX) ? id.slice(PREFIX.length) : undefined;
    return bare !== undefined && texts.has(bare) ? bare : undefined;
  }

  #load(
    list: PreparedList,
    schema: GraphQLSchema,
    id: string,
    unfit: UnfitDocument[],
  ): LoadedDocument | RequestError {
    const trusted = list.texts.get(id) ?? NO_TEXT;
    const entry = this.#loader.load(schema, trusted.text);
    list.entriesOf(schema).set(id, entry);
    if ('errors' in entry) unfit.push({ id, name: nameOf(trusted), errors: entry.errors });
    return entry;
  }

  #reportUnfit(unfit: readonly UnfitDocument[]): void {
    if (unfit.length > 0) this.#onUnfit(unfit);
  }
}

function isEqual(some: TrustedTexts, others: TrustedTexts): boolean {
  return some.size === others.size && [...some].every(([id, { text }]) => others.get(id)?.text === text);
}
