import {
  GROUP_ANNOUNCED,
  GROUP_CLOSED,
  PART_FAILED,
  PART_REMOVED,
  PART_RUNNING,
  PART_SUCCEEDED,
  PART_WAITING,
} from '../run/deferred-parts.ts';
import type { FieldError } from '../run/field-error.ts';
import { type Found, type Group, isOpen, openGroup, type Part, withoutEmpty } from './delivery-groups.ts';

/** Receives the results of groups, in the order of a payload. */
export interface PayloadWriter {
  /** The parts that a group delivers. */
  values(group: Group, parts: readonly Part[]): void;
  /** A group is complete; its groups below begin. */
  success(group: Group, next: readonly Group[]): void;
  failure(group: Group, error: FieldError): void;
}

/** Starts and stops the executions of parts. */
export interface PartRunner {
  start(part: Part): void;
  stop(part: Part): void;
}

/**
 * Decides when groups begin and are complete. A group begins when its parent group is complete, and is
 * complete when all of its parts have succeeded. A part that several groups share runs and is delivered once.
 */
export class WorkQueue {
  /** The groups that the client waits for. */
  readonly #announced = new Set<Group>();
  /** The parts that have ended since the last payload. */
  #ended: Part[] = [];
  #isCancelled = false;
  readonly #runner: PartRunner;

  constructor(runner: PartRunner) {
    this.#runner = runner;
  }

  /** Whether a payload can be written. */
  get isReady(): boolean {
    return this.#ended.length > 0;
  }

  /** Whether the client waits for no group. */
  get isComplete(): boolean {
    return this.#announced.size === 0;
  }

  /** Adds the parts of the first payload. Returns the groups that the client waits for. */
  begin(found: Found): readonly Group[] {
    const roots: Group[] = [];
    this.#add(found, roots);
    const begun = withoutEmpty(roots, []);
    for (const group of begun) this.#announce(group);
    return begun;
  }

  /** Starts the parts of the first groups. */
  start(): void {
    for (const group of this.#announced) this.#startParts(group);
  }

  /** A part has succeeded or failed. */
  end(part: Part, state: typeof PART_SUCCEEDED | typeof PART_FAILED): void {
    if (part.state !== PART_RUNNING) return;
    part.state = state;
    this.#ended.push(part);
  }

  /** Writes the results of the parts that have ended. */
  write(writer: PayloadWriter): void {
    // Parts that start here may end synchronously.
    for (let index = 0; index < this.#ended.length; index++) {
      const part = this.#ended[index] as Part;
      if (part.state === PART_SUCCEEDED) this.#succeed(part, writer);
      else if (part.state === PART_FAILED) this.#fail(part, writer);
    }
    this.#ended = [];
  }

  /** Stops all parts. */
  cancel(): void {
    this.#isCancelled = true;
    for (const group of this.#announced) this.#close(group);
    this.#ended = [];
  }

  #add({ groups, parts }: Found, roots: Group[]): void {
    for (const group of groups) openGroup(group, roots);
    for (const part of parts) {
      for (const group of part.groups) {
        if (!isOpen(group)) continue;
        group.parts.add(part);
        group.openParts++;
        if (group.state === GROUP_ANNOUNCED) this.#startPart(part);
      }
    }
  }

  #announce(group: Group): void {
    group.state = GROUP_ANNOUNCED;
    this.#announced.add(group);
  }

  #startParts(group: Group): void {
    for (const part of group.parts) this.#startPart(part);
  }

  #startPart(part: Part): void {
    // A resolver of an earlier part may have aborted the operation.
    if (this.#isCancelled) return;
    if (part.state === PART_WAITING) {
      part.state = PART_RUNNING;
      this.#runner.start(part);
    } else if (part.state === PART_FAILED) this.#ended.push(part);
  }

  #succeed(part: Part, writer: PayloadWriter): void {
    if (part.found !== undefined) this.#add(part.found, []);
    const next: Group[] = [];
    for (const group of part.groups) {
      if (!isOpen(group)) continue;
      group.openParts--;
      this.#completeIfDone(group, writer, next);
    }
    // The list grows while groups without open parts are complete immediately.
    for (const group of next) {
      this.#announce(group);
      this.#startParts(group);
      this.#completeIfDone(group, writer, next);
    }
  }

  #completeIfDone(group: Group, writer: PayloadWriter, next: Group[]): void {
    if (group.state !== GROUP_ANNOUNCED || group.openParts > 0) return;
    group.state = GROUP_CLOSED;
    this.#announced.delete(group);
    const parts = [...group.parts];
    for (const part of parts) {
      part.state = PART_REMOVED;
      for (const other of part.groups) other.parts.delete(part);
    }
    const children = withoutEmpty(group.children, []);
    if (parts.length > 0) writer.values(group, parts);
    writer.success(group, children);
    next.push(...children);
  }

  #fail(part: Part, writer: PayloadWriter): void {
    for (const group of part.groups) {
      if (group.state !== GROUP_ANNOUNCED) continue;
      this.#close(group);
      writer.failure(group, part.failure as FieldError);
    }
  }

  /** Removes a group with the groups below, and stops the parts that no other group needs. */
  #close(group: Group): void {
    this.#announced.delete(group);
    group.state = GROUP_CLOSED;
    for (const part of group.parts) if (!part.groups.some(isOpen)) this.#remove(part);
    for (const child of group.children) if (isOpen(child)) this.#close(child);
  }

  #remove(part: Part): void {
    const { state } = part;
    part.state = PART_REMOVED;
    if (state === PART_WAITING || state === PART_RUNNING) this.#runner.stop(part);
    for (const group of part.groups) group.parts.delete(part);
  }
}
