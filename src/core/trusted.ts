import { readdirSync, readFileSync, statSync } from 'node:fs';
import { readdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { types } from 'node:util';
import { GraphQLSchema, Kind } from 'graphql';
import type { MemoryAccount, PreparedOperation, RequestError } from '../execution/types.ts';
import { toError } from '../http/reply.ts';
import { formatValue } from '../options/rules.ts';
import { getOrCreate, isObject, isString } from '../options/values.ts';
import {
  type CoreParts,
  createOperationSelector,
  type DocumentParams,
  type LoadedDocument,
  type OperationSelector,
} from './documents.ts';
import { createOperationFactory, selectEngineInAdvance } from './engines.ts';
import { yieldToEventLoop } from './turns.ts';
import { createValidator } from './validate.ts';

/** Creates the list of trusted documents, which is replaced when the files at `path` change. */
export function createTrustedList(
  { texts, path }: { readonly texts: TrustedTexts; readonly path: string | undefined },
  parts: CoreParts,
): TrustedList {
  const { report } = parts;
  const schema = parts.schema instanceof GraphQLSchema ? parts.schema : undefined;
  const onUnfit = (unfit: readonly UnfitDocument[]): void => report(new Error(describeUnfit(unfit)));
  const list = new TrustedList(texts, createLoader(parts), schema, onUnfit);
  if (path !== undefined) {
    watchDocuments(list, path, (cause) => {
      const reason = toError(cause).message;
      const message = `The trusted documents of ${path} were not reloaded: ${reason}. The previous ones stay in use`;
      report(new Error(message, { cause }));
    });
  }
  return list;
}

/** Trusted documents do not count against the memory of the document cache. */
const UNLIMITED: MemoryAccount = { charge: () => true };

function createLoader({ options, engineSettings }: CoreParts): TrustedLoader {
  const validator = createValidator(options, engineSettings);
  const engine = selectEngineInAdvance(options.engine);
  const createOperation = createOperationFactory(engine, engineSettings, options);
  const { prepare, select } = createOperationSelector(options, (operation) =>
    createOperation(operation, UNLIMITED),
  );
  return {
    select,
    load(schema, { text }) {
      const validated = validator.validate(schema, validator.parse(text));
      if (validated.kind === 'error') return validated;
      const entry: LoadedDocument = {
        ...validated,
        source: text,
        operations: new Map(),
      };
      const names = operationNamesOf(entry);
      for (const name of names) prepare(schema, entry, name);
      const single = names.length === 1 ? entry.operations.get(names[0]) : undefined;
      if (single !== undefined) entry.operations.set(undefined, single);
      return entry;
    },
  };
}

const operationNamesOf = ({ document }: LoadedDocument): readonly (string | undefined)[] =>
  document.definitions.flatMap((node) => (node.kind === Kind.OPERATION_DEFINITION ? [node.name?.value] : []));

const MAX_DESCRIBED = 20;

/** Describes documents that do not fit the schema, a line for each. */
function describeUnfit(unfit: readonly UnfitDocument[]): string {
  const lines = unfit.slice(0, MAX_DESCRIBED).map(({ id, name, errors }) => {
    const title = name === undefined ? id : `${name} (${id})`;
    return `\n  ${title}: ${errors.map(({ message }) => message).join(' ')}`;
  });
  const more = unfit.length > lines.length ? `\n  and ${unfit.length - lines.length} more` : '';
  const subject = unfit.length === 1 ? '1 trusted document does' : `${unfit.length} trusted documents do`;
  return `${subject} not fit the schema:${lines.join('')}${more}`;
}

/** Validates and prepares trusted documents. */
interface TrustedLoader extends Pick<OperationSelector, 'select'> {
  /** Validates a document, and prepares all its operations. */
  load(schema: GraphQLSchema, trusted: TrustedText): LoadedDocument | RequestError;
}

/** A trusted document that does not fit the schema, or exceeds a limit. */
interface UnfitDocument {
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

  constructor(texts: TrustedTexts) {
    this.texts = texts;
  }

  entriesOf(schema: GraphQLSchema): Entries {
    return getOrCreate(this.bySchema, schema, () => new Map());
  }
}

const PREFIX = 'sha256:';
const NO_TEXT: TrustedText = { text: '', name: undefined };

/** The trusted documents of one core. They are not part of the document cache, so nothing evicts them. */
class TrustedList {
  readonly #loader: TrustedLoader;
  /** The schema whose documents are prepared in advance; undefined if it depends on the request. */
  #schema: GraphQLSchema | undefined;
  readonly #onUnfit: (unfit: readonly UnfitDocument[]) => void;
  readonly #listeners: (() => void)[] = [];
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
      if (entry.kind !== 'error') loaded.set(id, entry);
    return { schema, loaded };
  }

  /** Validates and prepares the documents for another schema. */
  warm(schema: GraphQLSchema): Promise<void> {
    return this.#loadInTurns(this.#current, schema);
  }

  /** Uses the documents of another schema. */
  use(schema: GraphQLSchema): void {
    this.#schema = schema;
  }

  has(id: string): boolean {
    return this.#idOf(this.#current.texts, id) !== undefined;
  }

  /** Prepares the document with this id. Returns undefined for an unknown one. */
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
    return this.#loader.select(schema, entry, params, source);
  }

  /** Validates and prepares other documents, yielding to the event loop, and then replaces the list with them. */
  async replace(texts: TrustedTexts): Promise<void> {
    if (isEqual(texts, this.#current.texts)) return;
    const next = new PreparedList(texts);
    if (this.#schema !== undefined) await this.#loadInTurns(next, this.#schema);
    this.#current = next;
    for (const listener of this.#listeners) listener();
  }

  /** Calls the listener after each replacement. */
  onReload(listener: () => void): void {
    this.#listeners.push(listener);
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

  async #loadInTurns(list: PreparedList, schema: GraphQLSchema): Promise<void> {
    const unfit: UnfitDocument[] = [];
    for (const id of list.texts.keys()) {
      await yieldToEventLoop();
      this.#load(list, schema, id, unfit);
    }
    this.#reportUnfit(unfit);
  }

  #load(
    list: PreparedList,
    schema: GraphQLSchema,
    id: string,
    unfit: UnfitDocument[],
  ): LoadedDocument | RequestError {
    const trusted = list.texts.get(id) ?? NO_TEXT;
    const entry = this.#loader.load(schema, trusted);
    list.entriesOf(schema).set(id, entry);
    if (entry.kind === 'error') unfit.push({ id, name: nameOf(trusted), errors: entry.errors });
    return entry;
  }

  #reportUnfit(unfit: readonly UnfitDocument[]): void {
    if (unfit.length > 0) this.#onUnfit(unfit);
  }
}

function isEqual(some: TrustedTexts, others: TrustedTexts): boolean {
  return some.size === others.size && [...some].every(([id, { text }]) => others.get(id)?.text === text);
}

/** Milliseconds between two checks of the files. */
const PERIOD = 500;

/**
 * Replaces the list when its file or directory has changed. A version counts when two checks have seen it, and when
 * it is still current after it was read, so that files are not read while they are written. A failed reload is
 * reported, and the list stays as it is. The checks keep neither the process nor the list alive.
 */
function watchDocuments(list: TrustedList, path: string, onError: (error: unknown) => void): void {
  const reference = new WeakRef(list);
  // The first check may find a change since the list was created.
  let current: string | undefined;
  let previous: string | undefined;

  // A missing file is a version too, which is reported once.
  const readVersion = (): Promise<string> => versionOf(path).catch((error: unknown) => String(error));

  async function check(): Promise<void> {
    const version = await readVersion();
    if (version !== current && version === previous) await reload(version);
    previous = version;
  }

  async function reload(version: string): Promise<void> {
    const [read] = await Promise.allSettled([readDocuments(path)]);
    // Parts of different versions may not belong together, or even have errors. Later checks read them again.
    if ((await readVersion()) !== version) return;
    current = version;
    try {
      if (read.status === 'rejected') throw read.reason;
      await reference.deref()?.replace(read.value);
    } catch (error) {
      onError(error);
    }
  }

  const schedule = (): void => {
    setTimeout(() => {
      if (reference.deref() !== undefined) void check().then(schedule);
    }, PERIOD).unref();
  };
  schedule();
}

// A manifest is read synchronously when the middleware is created, which throws if it is wrong, and asynchronously
// when it has changed.

const EXTENSION = /\.(?:graphql|gql)$/;

/**
 * Reads the documents of a file or directory.
 *
 * @throws Error of the file system, SyntaxError or TypeError.
 */
export function readDocumentsSync(path: string): TrustedTexts {
  if (!statSync(path).isDirectory()) return parseFile(path, readFileSync(path, 'utf8'));
  const names = readdirSync(path).filter((name) => EXTENSION.test(name));
  return textsOfDirectory(
    path,
    names.map((name) => [name, readFileSync(join(path, name), 'utf8')]),
  );
}

/** Like `readDocumentsSync`, without blocking the event loop. */
export async function readDocuments(path: string): Promise<TrustedTexts> {
  if (!(await stat(path)).isDirectory()) return parseFile(path, await readFile(path, 'utf8'));
  const names = (await readdir(path)).filter((name) => EXTENSION.test(name));
  return textsOfDirectory(
    path,
    await Promise.all(names.map(async (name) => [name, await readFile(join(path, name), 'utf8')] as const)),
  );
}

/** Returns a text that differs after a change of the file, or of a document in the directory. */
async function versionOf(path: string): Promise<string> {
  const info = await stat(path);
  if (!info.isDirectory()) return formatVersion(path, info);
  const names = (await readdir(path)).filter((name) => EXTENSION.test(name)).sort();
  const versions = await Promise.all(
    names.map(async (name) => formatVersion(name, await stat(join(path, name)))),
  );
  return versions.join('\n');
}

function formatVersion(
  name: string,
  { ino, size, mtimeMs, ctimeMs }: Record<'ino' | 'size' | 'mtimeMs' | 'ctimeMs', number>,
): string {
  return [name, ino, size, mtimeMs, ctimeMs].join(' ');
}

function parseFile(path: string, text: string): TrustedTexts {
  if (EXTENSION.test(path)) {
    throw new TypeError(
      'the file is a single document; expected: a JSON manifest, or a directory of documents',
    );
  }
  // Some tools write a byte order mark.
  return parseManifest(JSON.parse(text.replace(/^\uFEFF/, '')));
}

function textsOfDirectory(
  path: string,
  files: readonly (readonly [name: string, text: string])[],
): TrustedTexts {
  if (files.length === 0) throw new TypeError(`the directory ${path} contains no file <id>.graphql`);
  return parseManifest(new Map(files.map(([name, text]) => [name.replace(EXTENSION, ''), text])));
}

/** A trusted document before it is validated. */
export interface TrustedText {
  readonly text: string;
  /** The name in the manifest, for messages. */
  readonly name: string | undefined;
}

/** Trusted documents by id. A Map, because ids such as `__proto__` are members of every object. */
export type TrustedTexts = ReadonlyMap<string, TrustedText>;

const APOLLO = 'apollo-persisted-query-manifest';

/**
 * Reads the documents of a manifest, recognised by its shape: Apollo's manifest, or an object or Map of texts by id.
 *
 * @throws TypeError that says what is expected instead.
 */
export function parseManifest(manifest: unknown): TrustedTexts {
  if (types.isMap(manifest)) return textsOf([...manifest]);
  if (!isObject(manifest)) throw unexpected(manifest);
  if (!('format' in manifest && 'operations' in manifest)) return textsOf(Object.entries(manifest));
  const { format, version, operations } = manifest;
  if (format !== APOLLO || version !== 1) {
    throw new TypeError(
      `the manifest has the format ${formatValue(format)} and the version ${formatValue(version)}; expected: ${APOLLO}, 1`,
    );
  }
  if (!Array.isArray(operations)) throw unexpected(operations);
  const texts = new Map<string, TrustedText>();
  for (const operation of operations) {
    if (!isObject(operation)) throw unexpected(operation);
    const { id, body, name } = operation;
    add(texts, id, { text: body, name: isString(name) ? name : undefined });
  }
  return texts;
}

function textsOf(entries: readonly (readonly unknown[])[]): TrustedTexts {
  const texts = new Map<string, TrustedText>();
  for (const [id, text] of entries) add(texts, id, { text, name: undefined });
  return texts;
}

function add(
  texts: Map<string, TrustedText>,
  id: unknown,
  { text, name }: Omit<TrustedText, 'text'> & { readonly text: unknown },
): void {
  if (!isString(id) || id === '') {
    throw new TypeError(`a document has the id ${formatValue(id)}; expected: a string that is not empty`);
  }
  if (!isString(text) || text.trim() === '') {
    throw new TypeError(`the document ${formatValue(id)} is ${formatValue(text)}; expected: its text`);
  }
  const known = texts.get(id);
  if (known !== undefined && known.text !== text) {
    throw new TypeError(`two documents have the id ${formatValue(id)}; each needs its own id`);
  }
  texts.set(id, { text, name });
}

const unexpected = (value: unknown): TypeError =>
  new TypeError(
    `the manifest contains ${formatValue(value)}; expected: a manifest of Apollo, or an object of texts by id`,
  );

/** Returns the name of a document: in the manifest, or of its first operation, also if it has a syntax error. */
export const nameOf = ({ text, name }: TrustedText): string | undefined =>
  name ?? /\b(?:query|mutation|subscription)\s+([_A-Za-z]\w*)/.exec(text)?.[1];
