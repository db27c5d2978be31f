/** A file with the places where the GraphQL multipart request specification inserts it. */
interface MappedFile {
  readonly file: Blob;
  readonly paths: string[];
}

/** Replaces each file in a value by null, and returns the files with their paths. A file may occur repeatedly. */
export function takeFiles(value: object): { readonly json: unknown; readonly files: readonly MappedFile[] } {
  const files = new Map<Blob, string[]>();
  const copy = (member: unknown, path: string): unknown => {
    if (member instanceof Blob) {
      const paths = files.get(member) ?? [];
      files.set(member, [...paths, path]);
      return null;
    }
    if (Array.isArray(member)) return member.map((item, index) => copy(item, `${path}.${index}`));
    if (!isPlain(member)) return member;
    const entries = Object.entries(member);
    return Object.fromEntries(entries.map(([name, item]) => [name, copy(item, join(path, name))]));
  };
  const json = copy(value, '');
  return { json, files: [...files].map(([file, paths]) => ({ file, paths })) };
}

const join = (path: string, name: string): string => (path === '' ? name : `${path}.${name}`);

/** Other objects, such as dates, have their own JSON. */
function isPlain(value: unknown): value is object {
  if (typeof value !== 'object' || value === null) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === null || Object.getPrototypeOf(prototype) === null;
}
