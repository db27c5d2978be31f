import type { DirectiveNode, ResponsePath } from 'graphql';
import type { FieldError } from './field-error.ts';

/** One `@defer` in the selection set of one object type. */
export interface DeferUsage {
  /** Unique in one compiled operation. */
  readonly id: number;
  /** Its index among the usages of the same selection set. */
  readonly index: number;
  readonly label: string | undefined;
  readonly directive: DirectiveNode;
  /** The usage that encloses this one. */
  readonly parent: DeferUsage | undefined;
}

/** The state of a group: created with its object, and registered when the fields of the object have run. */
const GROUP_CREATED = 0;
export const GROUP_REGISTERED = 1;
/** The group waits for its parent group. */
export const GROUP_OPEN = 2;
/** The client knows the group, and its parts run. */
export const GROUP_ANNOUNCED = 3;
export const GROUP_CLOSED = 4;

/** The fields that one usage defers in one object of the response. They are delivered together. */
export class DeliveryGroup<Ex> {
  state: number = GROUP_CREATED;
  /** Its id in the payloads, from its announcement until its completion. */
  id: string | undefined = undefined;
  /** The parts that the group has to deliver. */
  readonly parts: Set<DeferredPart<Ex>> = new Set();
  /** The number of parts that have not succeeded. */
  openParts = 0;
  readonly children: DeliveryGroup<Ex>[] = [];
  readonly usage: DeferUsage;
  readonly path: ResponsePath | undefined;
  readonly parent: DeliveryGroup<Ex> | undefined;

  constructor(usage: DeferUsage, path: ResponsePath | undefined, parent: DeliveryGroup<Ex> | undefined) {
    this.usage = usage;
    this.path = path;
    this.parent = parent;
  }
}

export const PART_WAITING = 0;
export const PART_RUNNING = 1;
export const PART_SUCCEEDED = 2;
export const PART_FAILED = 3;
/** The part was delivered or cancelled. */
export const PART_REMOVED = 4;

/** Fields of one object that are executed together, after the payload that contains the object. */
export class DeferredPart<Ex> {
  state: number = PART_WAITING;
  /** The execution of the part while it runs. */
  ex: Ex | undefined = undefined;
  /** The JSON text of the fields, and their errors. */
  data = '';
  errors: readonly FieldError[] | undefined = undefined;
  /** The error that has propagated to the object. */
  failure: FieldError | undefined = undefined;
  /** The parts that the execution of this part has found. */
  found: DeferredParts<Ex> | undefined = undefined;
  /** The groups that deliver the part: the first of them that completes. */
  readonly groups: readonly DeliveryGroup<Ex>[];
  readonly path: ResponsePath | undefined;
  readonly source: unknown;
  /** Writes the fields. Throws if one of them makes the object null. */
  readonly write: PartWrite<Ex>;

  constructor(
    groups: readonly DeliveryGroup<Ex>[],
    path: ResponsePath | undefined,
    source: unknown,
    write: PartWrite<Ex>,
  ) {
    this.groups = groups;
    this.path = path;
    this.source = source;
    this.write = write;
  }
}

type PartWrite<Ex> = (ex: Ex, source: unknown, path: ResponsePath | undefined) => void;

/** The groups of one operation by the path of their objects. All its executions share them. */
export type GroupsByPath<Ex> = Map<ResponsePath | undefined, readonly DeliveryGroup<Ex>[]>;

/** The deferred parts that one execution finds: that of the first payload, or of another part. */
export class DeferredParts<Ex> {
  readonly groups: DeliveryGroup<Ex>[] = [];
  parts: DeferredPart<Ex>[] = [];
  readonly groupsByPath: GroupsByPath<Ex>;

  constructor(groupsByPath: GroupsByPath<Ex>) {
    this.groupsByPath = groupsByPath;
  }

  /** Creates the groups of an object, before its fields are executed. */
  openGroups(usages: readonly DeferUsage[], path: ResponsePath | undefined): void {
    const groups: DeliveryGroup<Ex>[] = [];
    for (const usage of usages) {
      const { parent } = usage;
      // The enclosing usage may belong to the same object.
      const sibling = parent === undefined ? undefined : groups[parent.index];
      const enclosing =
        parent === undefined ? undefined : sibling?.usage === parent ? sibling : this.groupOf(parent, path);
      groups.push(new DeliveryGroup(usage, path, enclosing));
    }
    this.groupsByPath.set(path, groups);
  }

  /** Registers the groups of an object, after its fields were executed. */
  registerGroups(path: ResponsePath | undefined): void {
    for (const group of this.groupsByPath.get(path) ?? []) {
      group.state = GROUP_REGISTERED;
      this.groups.push(group);
    }
  }

  /** Returns the group of a usage in the object at the path, or in the nearest object above it. */
  groupOf(usage: DeferUsage, path: ResponsePath | undefined): DeliveryGroup<Ex> {
    for (let at = path; ; at = at.prev) {
      const group = this.groupsByPath.get(at)?.[usage.index];
      if (group?.usage === usage) return group;
      if (at === undefined) throw new TypeError('The group of a deferred field does not exist');
    }
  }
}
