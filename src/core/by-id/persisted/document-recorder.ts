import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { readFile, rename, rm, writeFile } from 'node:fs/promises';
import { isThenable, type PreparedOperation, type RequestError } from '../../../execution/types.ts';
import { isObject, optionError } from '../../../options/rules.ts';
import { DOCUMENT_OPTIONS } from '../../../options/scopes.ts';
import type { Prepare } from '../../prepare.ts';
import { hashQuery } from './persisted-queries.ts';

type Prepared = PreparedOperation | RequestError;

/** Milliseconds in which documents are collected before they are written. */
const DELAY = 100;
/** The maximum number of documents that one process records. */
const MAX_DOCUMENTS = 10_000;

/** Collects the texts of valid documents in a JSON file, by their ids or else by their SHA-256 hashes. */
export class DocumentRecorder {
  readonly #path: string;
  readonly #onError: (error: unknown) => void;
  readonly #recorded = new Map<string, string>();
  #writing: Promise<void> | undefined;

  /** @throws TypeError (code `ERR_OPTION`) if the file contains anything but texts by id. */
  constructor(path: string, onError: (error: unknown) => void) {
    this.#path = path;
    this.#onError = onError;
    try {
      parseMap(path, readFileSync(path, 'utf8'));
    } catch (error) {
      const { code, message } = error as NodeJS.ErrnoException;
      if (code !== 'ENOENT') throw optionError(DOCUMENT_OPTIONS, `option "documents.record": ${message}`);
    }
  }

  /** Returns a function that prepares documents and records them. */
  record(prepare: Prepare): Prepare {
    return (schema, params, source) => {
      // `prepare` sets the text of a document that it finds by id.
      if (params.query === '') return prepare(schema, params, source);
      const id = params.document?.id;
      const prepared = prepare(schema, params, source);
      if (isThenable(prepared)) return prepared.then((settled) => this.#add(settled, id));
      return this.#add(prepared, id);
    };
  }

  #add(prepared: Prepared, given: string | undefined): Prepared {
    // GraphiQL introspects, which no front end does.
    if ('errors' in prepared || prepared.cost?.introspection !== 0) return prepared;
    // The text that was prepared: with a trusted id, the text of the request is not validated.
    const { source } = prepared;
    const id = given ?? hashQuery(source);
    if (this.#recorded.has(id) || this.#recorded.size >= MAX_DOCUMENTS) return prepared;
    this.#recorded.set(id, source);
    this.#writing ??= this.#write();
    return prepared;
  }

  async #write(): Promise<void> {
    await new Promise((resolve) => setTimeout(resolve, DELAY));
    this.#writing = undefined;
    try {
      await addToFile(this.#path, this.#recorded);
    } catch (error) {
      this.#onError(error);
    }
  }
}

/** Adds documents to the file in one step, so that no reader sees half of it. Other programs may have changed it. */
async function addToFile(path: string, recorded: ReadonlyMap<string, string>): Promise<void> {
  const text = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return '{}';
    throw error;
  });
  const documents = new Map([...parseMap(path, text), ...recorded]);
  const sorted = [...documents].sort(([a], [b]) => (a < b ? -1 : 1));
  const next = `${JSON.stringify(Object.fromEntries(sorted), undefined, 2)}\n`;
  if (next === text) return;
  const temporary = `${path}.${randomBytes(6).toString('hex')}.tmp`;
  try {
    await writeFile(temporary, next, { flag: 'wx' });
    await rename(temporary, path);
  } finally {
    await rm(temporary, { force: true });
  }
}

function parseMap(path: string, text: string): Map<string, string> {
  const value: unknown = text.trim() === '' ? {} : JSON.parse(text);
  const entries = isObject(value) ? Object.entries(value) : [];
  if (isObject(value) && entries.every((entry): entry is [string, string] => typeof entry[1] === 'string')) {
    return new Map(entries as [string, string][]);
  }
  throw new TypeError(`the file ${path} contains other values than texts by id; use another file`);
}
