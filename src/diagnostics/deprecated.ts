/** The use of a deprecated part of a schema by one client. */
export interface DeprecatedUse {
  /** Such as `User.email`. */
  readonly coordinate: string;
  readonly client: string;
  readonly count: number;
  /** Milliseconds since 1970. */
  readonly last: number;
}

const readers = new WeakMap<object, () => readonly DeprecatedUse[]>();
let owners: WeakRef<object>[] = [];

/** Registers the uses that `owner` has counted. It does not keep the owner alive. */
export function registerDeprecatedUse<Owner extends object>(
  owner: Owner,
  read: (owner: Owner) => readonly DeprecatedUse[],
): void {
  readers.set(owner, () => read(owner));
  owners = [...owners.filter((reference) => reference.deref() !== undefined), new WeakRef(owner)];
}

/** Returns the uses of deprecated parts of all schemas since the start; undefined if no handler counts them. */
export function readDeprecatedUse(): readonly DeprecatedUse[] | undefined {
  const live = owners.map((reference) => reference.deref()).filter((owner) => owner !== undefined);
  if (live.length === 0) return undefined;
  return live.flatMap((owner) => readers.get(owner)?.() ?? []);
}
