import type { DeferUsage } from '../run/deferred-parts.ts';
import type { DeferredField, DeferredFields } from './collect-fields.ts';

/** Fields that are deferred for the same usages, and executed together. */
export interface FieldGroup {
  readonly usages: readonly DeferUsage[];
  readonly fields: DeferredFields;
}

/** The fields of a selection set by the time of their execution. */
interface GroupedFields {
  /** The fields that are executed with the object. */
  readonly own: DeferredFields;
  readonly deferred: readonly FieldGroup[];
}

/** Decides when fields are executed. The two formats of payloads differ in it. */
export interface Grouping {
  /** Returns the usages of the part that executes a field; none for the first payload. */
  usagesOf(fields: readonly DeferredField[]): readonly DeferUsage[];
  /** Groups the fields of an object; `usages` are those of the part that executes the object. */
  group(grouped: DeferredFields, usages: readonly DeferUsage[]): GroupedFields;
}

const NONE: readonly DeferUsage[] = [];

class Groups {
  readonly #own = new Map<string, DeferredField[]>();
  readonly #deferred = new Map<
    string,
    { usages: readonly DeferUsage[]; fields: Map<string, DeferredField[]> }
  >();
  readonly #ownKey: string;

  constructor(usages: readonly DeferUsage[]) {
    this.#ownKey = keyOf(usages);
  }

  add(key: string, usages: readonly DeferUsage[], fields: readonly DeferredField[]): void {
    const target = this.#fieldsFor(usages);
    const known = target.get(key);
    if (known === undefined) target.set(key, [...fields]);
    else known.push(...fields);
  }

  #fieldsFor(usages: readonly DeferUsage[]): Map<string, DeferredField[]> {
    const key = keyOf(usages);
    if (key === this.#ownKey) return this.#own;
    let group = this.#deferred.get(key);
    if (group === undefined) {
      group = { usages, fields: new Map() };
      this.#deferred.set(key, group);
    }
    return group.fields;
  }

  result(): GroupedFields {
    return { own: this.#own, deferred: [...this.#deferred.values()] };
  }
}

/** Two lists of the same usages have the same key in any order. */
function keyOf(usages: readonly DeferUsage[]): string {
  if (usages.length === 1) return String(usages[0]?.id);
  const ids = usages.map(({ id }) => id);
  return ids.sort((a, b) => a - b).join();
}

/**
 * The format since 2024: a field that several usages share is executed once, for all of them. A field that is
 * also selected outside of usages is not deferred.
 */
export const SHARED_FIELDS: Grouping = {
  usagesOf(fields) {
    const usages = new Set<DeferUsage>();
    for (const { usage } of fields) {
      if (usage === undefined) return NONE;
      usages.add(usage);
    }
    for (const usage of usages) if (hasParentIn(usages, usage)) usages.delete(usage);
    return [...usages];
  },
  group(grouped, usages) {
    const groups = new Groups(usages);
    for (const [key, fields] of grouped) groups.add(key, SHARED_FIELDS.usagesOf(fields), fields);
    return groups.result();
  },
};

/** The parts of an enclosing usage are delivered first, so the field is not needed again. */
function hasParentIn(usages: ReadonlySet<DeferUsage>, usage: DeferUsage): boolean {
  for (let at = usage.parent; at !== undefined; at = at.parent) if (usages.has(at)) return true;
  return false;
}

/** The format of 2022: each usage executes its own fields. */
export const REPEATED_FIELDS: Grouping = {
  usagesOf: ([first]) => (first?.usage === undefined ? NONE : [first.usage]),
  group(grouped, usages) {
    const groups = new Groups(usages);
    for (const [key, fields] of grouped) {
      for (const field of fields) groups.add(key, field.usage === undefined ? NONE : [field.usage], [field]);
    }
    return groups.result();
  },
};
