export const JSON_TYPE = 'application/json';
export const GRAPHQL_TYPE = 'application/graphql-response+json';

/** What a Content-Type says about a body. */
export type BodyKind = 'json' | 'multipart' | 'charset' | 'none' | 'other';

const MAX_REMEMBERED = 32;

/** Reads Content-Type headers; answers are remembered, since clients repeat theirs. */
export function createTypeReader(): (contentType: string | undefined) => BodyKind {
  const remembered = new Map<string, BodyKind>();
  return (contentType) => {
    if (contentType === undefined) return 'none';
    let kind = remembered.get(contentType);
    if (kind === undefined) {
      kind = kindOf(contentType);
      if (contentType.length <= 256 && kind !== 'multipart') {
        if (remembered.size >= MAX_REMEMBERED) remembered.clear();
        remembered.set(contentType, kind);
      }
    }
    return kind;
  };
}

/** By the exact essence, so that `text/plain; application/json` is text: browsers send that without a preflight. */
function kindOf(contentType: string): BodyKind {
  const [essence = '', ...parameters] = contentType.split(';');
  const type = essence.trim().toLowerCase();
  if (type === 'multipart/form-data') return 'multipart';
  if (type !== JSON_TYPE && type !== GRAPHQL_TYPE) return 'other';
  const charsets = parameters.filter((parameter) => /^\s*charset\s*=/i.test(parameter));
  return charsets.every((parameter) => /=\s*"?utf-?8"?\s*$/i.test(parameter)) ? 'json' : 'charset';
}

/** True for JSON in UTF-8. */
export const isJsonType = (contentType: string): boolean => kindOf(contentType) === 'json';
