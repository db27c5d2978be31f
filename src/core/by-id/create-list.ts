import { GraphQLSchema, Kind } from 'graphql';
import type { MemoryAccount } from '../../execution/types.ts';
import { toError } from '../../http/reply.ts';
import { createOperationSelector, type LoadedDocument } from '../documents/operations.ts';
import { createValidator } from '../documents/validate.ts';
import { createOperationFactory } from '../incremental.ts';
import { selectEngineInAdvance } from '../select-engine.ts';
import type { CoreParts } from './options.ts';
import type { TrustedTexts } from './trusted/manifest.ts';
import { watchDocuments } from './trusted/reload.ts';
import { TrustedList, type TrustedLoader, type UnfitDocument } from './trusted/trusted-list.ts';

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
    load(schema, text) {
      const validated = validator.validate(schema, validator.parse(text));
      if ('errors' in validated) return validated;
      const entry: LoadedDocument = { ...validated, source: text, operations: new Map() };
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
