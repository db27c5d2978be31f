import type { FindDocument } from '../../../types/graphql.ts';
import { isThenable } from '../../execution/types.ts';
import { wrongReturnValue } from '../../options/rules.ts';
import { DOCUMENT_OPTIONS } from '../../options/scopes.ts';
import type { Prepare } from '../prepare.ts';
import type { PrepareTrusted } from './prepare-by-id.ts';

/** The maximum length of an id that is passed to the function of the option. */
const MAX_ID_LENGTH = 512;

/** Finds the texts of trusted documents with a function. The document cache has their prepared form. */
export function prepareFound(find: FindDocument, prepare: Prepare): PrepareTrusted {
  return (id, schema, params, source) => {
    if (id.length > MAX_ID_LENGTH) return undefined;
    const use = (text: unknown): ReturnType<PrepareTrusted> => {
      if (text === undefined || text === null) return undefined;
      if (typeof text !== 'string' || text === '') {
        throw wrongReturnValue(DOCUMENT_OPTIONS, 'from', text, 'the text of a document, or undefined');
      }
      params.query = text;
      return prepare(schema, params, source);
    };
    const found = find(id);
    // A promise of another library becomes a native one.
    return isThenable(found) ? Promise.resolve(found).then(use) : use(found);
  };
}
