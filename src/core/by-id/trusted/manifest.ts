import { types } from 'node:util';
import { formatValue, isObject, isString } from '../../../options/rules.ts';

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
  { text, name }: { readonly text: unknown; readonly name: string | undefined },
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
