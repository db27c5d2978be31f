import type { MaybePromise } from '../../../types/connect.ts';
import { isThenable, type PreparedOperation, type RequestError } from '../../execution/types.ts';
import { assertSync } from '../../options/rules.ts';
import { DOCUMENT_OPTIONS } from '../../options/scopes.ts';
import { documentNotFound, documentNotTrusted, notFound, notSupported } from '../documents/refusals.ts';
import type { Prepare } from '../prepare.ts';
import type { DocumentSettings } from './options.ts';
import type { DocumentRecorder } from './persisted/document-recorder.ts';
import { hashOf, type PersistedQueries } from './persisted/persisted-queries.ts';

/** Prepares the trusted document with an id, and sets its text in the parameters. Returns undefined for an unknown id. */
export type PrepareTrusted = (
  id: string,
  ...args: Parameters<Prepare>
) => MaybePromise<PreparedOperation | RequestError | undefined>;

/** The kinds of documents of one core, as the option `documents` selects them. */
interface DocumentKinds {
  /** Prepares any document by its text. */
  readonly prepare: Prepare;
  readonly trusted: PrepareTrusted | undefined;
  readonly persisted: PersistedQueries | undefined;
  readonly recorder: DocumentRecorder | undefined;
}

/**
 * Creates the `prepare` function of a core with the option `documents`. A trusted id takes precedence over a text.
 * If the function finds a document by id, it sets the text in the parameters.
 */
export function createPrepareById(
  { only }: Pick<DocumentSettings, 'only'>,
  { prepare, trusted, persisted, recorder }: DocumentKinds,
): Prepare {
  const isOnly =
    typeof only === 'function'
      ? (source: unknown) => assertSync(only(source), DOCUMENT_OPTIONS, 'only')
      : () => only;

  const unknown = trusted === undefined && persisted === undefined ? notSupported : notFound;

  const prepareOther: Prepare = (schema, params, source) => {
    const { document, query } = params;
    if (isOnly(source)) return query === '' ? documentNotFound() : documentNotTrusted();
    if (document !== undefined) {
      const hash = hashOf(document);
      if (persisted !== undefined && hash !== undefined) {
        return persisted.prepare(schema, params, source, hash);
      }
      if (query === '') return unknown(document);
    }
    return prepare(schema, params, source);
  };

  const prepareById: Prepare = (schema, params, source) => {
    if (params.document === undefined || trusted === undefined) return prepareOther(schema, params, source);
    const found = trusted(params.document.id, schema, params, source);
    if (isThenable(found)) {
      return found.then((settled) => settled ?? prepareOther(schema, params, source));
    }
    return found ?? prepareOther(schema, params, source);
  };
  return recorder === undefined ? prepareById : recorder.record(prepareById);
}
