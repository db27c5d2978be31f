/** A payload of either format. */
export interface Payload {
  data?: unknown;
  errors?: object[];
  pending?: { id: string; path: (string | number)[] }[];
  incremental?: {
    id?: string;
    subPath?: (string | number)[];
    path?: (string | number)[];
    data?: object | null;
    items?: unknown[] | null;
    errors?: object[];
  }[];
  completed?: { id: string; errors?: object[] }[];
  hasNext: boolean;
}

export interface Merged {
  data: unknown;
  errors: object[];
  /** Whether a part failed, so that its fields are missing instead of null. */
  hasFailedParts: boolean;
}

/** Merges the payloads of an incremental response as clients do. */
export function merge(payloads: readonly Payload[]): Merged {
  const [first, ...others] = payloads as [Payload, ...Payload[]];
  const root = { data: first.data };
  const merged: Merged = { data: undefined, errors: [...(first.errors ?? [])], hasFailedParts: false };
  const paths = new Map<string, (string | number)[]>();
  const at = (path: readonly (string | number)[]): unknown => {
    let value: unknown = root.data;
    for (const key of path) value = (value as Record<string | number, unknown>)[key];
    return value;
  };
  for (const payload of [first, ...others]) {
    for (const { id, path } of payload.pending ?? []) paths.set(id, path);
    for (const part of payload.incremental ?? []) {
      merged.errors.push(...(part.errors ?? []));
      const base = part.id === undefined ? (part.path ?? []) : (paths.get(part.id) as (string | number)[]);
      const path = [...base, ...(part.subPath ?? [])];
      if (part.items) {
        // The format of 2022 has the index of the first item in the path.
        const list = at(part.id === undefined ? path.slice(0, -1) : path) as unknown[];
        list.push(...part.items);
      } else if (part.data) mergeInto(at(path) as object, part.data);
      else merged.hasFailedParts = true;
    }
    for (const { errors } of payload.completed ?? []) {
      if (errors === undefined) continue;
      merged.errors.push(...errors);
      merged.hasFailedParts = true;
    }
  }
  merged.data = root.data;
  return merged;
}

/** Merges deeply: two parts may have the same field with different selections. */
function mergeInto(target: object, part: object): void {
  for (const [name, value] of Object.entries(part)) {
    const present: unknown = Object.hasOwn(target, name) ? Reflect.get(target, name) : undefined;
    if (typeof present === 'object' && present !== null && typeof value === 'object' && value !== null) {
      mergeInto(present, value);
    } else
      Object.defineProperty(target, name, { value, enumerable: true, writable: true, configurable: true });
  }
}

/** Returns the JSON objects of a body: of the parts, the events or the lines. */
export function jsonLines(body: string): Payload[] {
  return body
    .split('\n')
    .map((line) => line.replace(/^data: /, ''))
    .filter((line) => line.startsWith('{'))
    .map((line) => JSON.parse(line));
}
