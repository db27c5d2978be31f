import type { DirectiveNode, ResponsePath } from 'graphql';
import type { ExecutionInputs, IncrementalFormat, RemainingResults } from '../execution/types.ts';
import { UnusedValues } from '../execution/unused-values.ts';
import {
  type AbortScope,
  abortExecution,
  createInfoFunctions,
  type ErrorPosition,
  Execution,
  endSyncRun,
  type FieldError,
  keysOf,
  type ObjectRun,
  Pending,
  type Program,
  releaseExecution,
  toFieldError,
} from './execution.ts';
import { dataText } from './outcome.ts';
import { attachChildren, takePending } from './promises.ts';

type Result = IteratorResult<string, undefined>;

/** A call of `next` that waits. */
interface Call {
  readonly promise: Promise<Result>;
  resolve(result: Result): void;
  reject(error: unknown): void;
}

const END: Result = { done: true, value: undefined };
const RESOLVED = Promise.resolve();

/**
 * The payloads after the first one. The parts start with the first call of `next`, and a payload contains
 * everything that is complete when it is read.
 */
export class RemainingPayloads implements RemainingResults {
  readonly #operation: DeferredOperation;
  readonly #queue: WorkQueue;
  readonly #text: PayloadText;
  #call: Call | undefined;
  #hasStarted = false;
  #isScheduled = false;
  #hasEnded = false;
  get openIds(): ReadonlySet<string> | undefined {
    return this.#text.openIds;
  }

  /** The error that the next call of `next` rejects with. */
  #error: { readonly reason: unknown } | undefined;

  constructor(operation: DeferredOperation, text: PayloadText) {
    this.#operation = operation;
    this.#queue = new WorkQueue(operation);
    this.#text = text;
    operation.listener = this;
  }

  /** Returns the members of the first payload after `data`. */
  begin(found: Found): string {
    const members = this.#text.first(this.#queue.begin(found));
    const { signal } = this.#operation.inputs;
    if (signal?.aborted === true) this.fail(signal.reason);
    else signal?.addEventListener('abort', this.#onAbort);
    return members;
  }

  next(): Promise<Result> {
    if (this.#call !== undefined) {
      const { promise } = this.#call;
      const next = (): Promise<Result> => this.next();
      return promise.then(next, next);
    }
    if (this.#error !== undefined) {
      const { reason } = this.#error;
      this.#error = undefined;
      return Promise.reject(reason);
    }
    if (this.#hasEnded) return Promise.resolve(END);
    const call = createCall();
    this.#call = call;
    this.#schedule();
    return call.promise;
  }

  return(): Promise<Result> {
    this.#end();
    this.#error = undefined;
    this.#take()?.resolve(END);
    return Promise.resolve(END);
  }

  onEnd(part: Part, state: typeof PART_SUCCEEDED | typeof PART_FAILED): void {
    this.#queue.end(part, state);
    if (this.#queue.isReady) this.#schedule();
  }

  readonly #onAbort = (): void => this.fail(this.#operation.inputs.signal?.reason);

  /** Continues in a microtask, so that a payload contains the parts that end together. */
  #schedule(): void {
    if (this.#isScheduled || this.#call === undefined) return;
    this.#isScheduled = true;
    void RESOLVED.then(() => {
      this.#isScheduled = false;
      if (this.#call === undefined || this.#hasEnded) return;
      try {
        this.#continue();
      } catch (error) {
        // A function of the application that formats errors has thrown.
        this.fail(error);
      }
    });
  }

  #continue(): void {
    if (!this.#hasStarted) {
      this.#hasStarted = true;
      this.#queue.start();
      return;
    }
    if (!this.#queue.isReady) return;
    this.#queue.write(this.#text);
    const { isComplete } = this.#queue;
    const payload = this.#text.take(!isComplete);
    if (isComplete) this.#end();
    if (payload !== undefined) this.#take()?.resolve({ done: false, value: payload });
  }

  /** Ends the payloads with an error: the client has disconnected, or a part cannot be written. */
  fail(reason: unknown): void {
    if (this.#hasEnded) return;
    this.#end(reason);
    const call = this.#take();
    if (call === undefined) this.#error = { reason };
    else call.reject(reason);
  }

  /** Stops the parts that still run. */
  #end(reason?: unknown): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    this.#operation.inputs.signal?.removeEventListener('abort', this.#onAbort);
    this.#queue.cancel();
    this.#operation.finish(reason);
  }

  #take(): Call | undefined {
    const call = this.#call;
    this.#call = undefined;
    return call;
  }
}

function createCall(): Call {
  let resolve: Call['resolve'] = () => undefined;
  let reject: Call['reject'] = () => undefined;
  const promise = new Promise<Result>((onResult, onError) => {
    resolve = onResult;
    reject = onError;
  });
  return { promise, resolve, reject };
}

/** The position of the object that a part belongs to. */
const PART: ErrorPosition = { field: undefined, nullable: true, shape: 'object' };

/** The coerced variables of an operation (see `Execution`). */
interface Variables {
  readonly variables: Record<string, unknown>;
  readonly values: Record<string, unknown>;
}

/** One operation with deferred parts: the state that the executions of the first payload and of its parts share. */
export class DeferredOperation implements AbortScope {
  /** All payloads were delivered, or the client has disconnected. */
  finished = false;
  abortResolvers: ((reason?: unknown) => void) | undefined = undefined;
  listener: RemainingPayloads | undefined = undefined;
  readonly inputs: ExecutionInputs;
  readonly #program: Program;
  readonly #variables: Variables;
  readonly #infoFunctions: Execution['infoFunctions'];
  readonly #groupsByPath: GroupsByPath = new Map();
  #unusedValues: UnusedValues | undefined;

  constructor(program: Program, inputs: ExecutionInputs, variables: Variables) {
    this.#program = program;
    this.inputs = inputs;
    this.#variables = variables;
    this.#infoFunctions = createInfoFunctions(this);
  }

  /** Creates the execution of the first payload or of a part. */
  createExecution(program: Program = this.#program): Execution {
    const { variables, values } = this.#variables;
    const ex = new Execution(program, this.inputs, variables, values);
    ex.infoFunctions = this.#infoFunctions;
    ex.deferred = new Found(this.#groupsByPath);
    return ex;
  }

  /** Executes a part. It may end synchronously. */
  start(part: Part): void {
    const ex = this.createExecution();
    part.ex = ex;
    try {
      part.write(ex, part.source, part.path);
    } catch (caught) {
      this.#ignoreRejections(part);
      this.#fail(part, ex, toFieldError(caught, PART, undefined));
      return;
    }
    endSyncRun(ex);
    if (ex.finished) return;
    if (ex.pending.length === 0) this.#succeed(part, ex, undefined);
    else this.#wait(part, ex);
  }

  stop(part: Part): void {
    if (part.ex === undefined) this.#ignoreRejections(part);
    else abortExecution(part.ex, undefined);
    part.ex = undefined;
  }

  /** Removes the parts of objects that an error has made null. Returns whether parts are left. */
  removeNulled(found: Found, nulledPaths: ReadonlySet<ResponsePath | undefined> | undefined): boolean {
    if (nulledPaths !== undefined && nulledPaths.size > 0) {
      const isNulled = ({ path }: Part): boolean => {
        for (let at = path; at !== undefined; at = at.prev) if (nulledPaths.has(at)) return true;
        return nulledPaths.has(undefined);
      };
      for (const part of found.parts) if (isNulled(part)) this.#ignoreRejections(part);
      found.parts = found.parts.filter((part) => !isNulled(part));
    }
    return found.parts.length > 0;
  }

  /** Ends the operation: resolvers that still run are aborted. */
  finish(reason?: unknown): void {
    if (this.finished) return;
    this.finished = true;
    this.abortResolvers?.(reason);
  }

  #wait(part: Part, ex: Execution): void {
    const root = new Pending(ex, PART, undefined);
    attachChildren(ex, root, takePending(ex));
    if (root.openChildren === 0) {
      this.#succeed(part, ex, root);
      return;
    }
    root.onDone = () => {
      root.onDone = undefined;
      if (ex.finished) return;
      if (root.isNull) this.#fail(part, ex, ex.errors?.at(-1) as FieldError);
      else this.#succeed(part, ex, root);
      root.children = undefined;
    };
  }

  #succeed(part: Part, ex: Execution, root: Pending | undefined): void {
    const { errors, nulledPaths, deferred } = ex;
    ex.finished = true;
    try {
      part.data = dataText(ex, root);
    } catch (error) {
      this.listener?.fail(error);
      return;
    } finally {
      releaseExecution(ex);
      part.ex = undefined;
    }
    part.errors = errors;
    if (deferred !== undefined && this.removeNulled(deferred, nulledPaths)) part.found = deferred;
    this.listener?.onEnd(part, PART_SUCCEEDED);
  }

  #fail(part: Part, ex: Execution, failure: FieldError): void {
    const wasStopped = ex.finished;
    ex.finished = true;
    endSyncRun(ex);
    for (const found of ex.deferred?.parts ?? []) this.#ignoreRejections(found);
    part.ex = undefined;
    if (wasStopped) return;
    part.failure = failure;
    this.listener?.onEnd(part, PART_FAILED);
  }

  /** Handles the rejections of promises that nothing will read. */
  #ignoreRejections({ source, path }: Part): void {
    this.#unusedValues ??= new UnusedValues();
    if (path === undefined) this.#unusedValues.ignoreRootRejections(source);
    else this.#unusedValues.ignoreRejections(source);
  }
}

/**
 * Decides when groups begin and are complete. A group begins when its parent group is complete, and is
 * complete when all of its parts have succeeded. A part that several groups share runs and is delivered once.
 */
class WorkQueue {
  /** The groups that the client waits for. */
  readonly #announced = new Set<Group>();
  /** The parts that have ended since the last payload. */
  #ended: Part[] = [];
  #isCancelled = false;
  readonly #operation: DeferredOperation;

  constructor(operation: DeferredOperation) {
    this.#operation = operation;
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
  write(writer: PayloadText): void {
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
      this.#operation.start(part);
    } else if (part.state === PART_FAILED) this.#ended.push(part);
  }

  #succeed(part: Part, writer: PayloadText): void {
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

  #completeIfDone(group: Group, writer: PayloadText, next: Group[]): void {
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

  #fail(part: Part, writer: PayloadText): void {
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
    if (state === PART_WAITING || state === PART_RUNNING) this.#operation.stop(part);
    for (const group of part.groups) group.parts.delete(part);
  }
}

/** Whether a group has still to be delivered. */
const isOpen = ({ state }: Group): boolean => state === GROUP_OPEN || state === GROUP_ANNOUNCED;

/**
 * Opens a group whose parent is open. The parent may come later in the list of groups. Groups without a
 * parent are added to `roots`.
 */
function openGroup(group: Group, roots: Group[]): void {
  if (group.state !== GROUP_REGISTERED) return;
  const { parent } = group;
  if (parent === undefined) roots.push(group);
  else {
    openGroup(parent, roots);
    if (!isOpen(parent)) {
      group.state = GROUP_CLOSED;
      return;
    }
    parent.children.push(group);
  }
  group.state = GROUP_OPEN;
}

/** Returns the groups that have parts, with the groups below those that have none. */
function withoutEmpty(groups: readonly Group[], filled: Group[]): Group[] {
  for (const group of groups) {
    if (group.state !== GROUP_OPEN) continue;
    if (group.parts.size > 0) filled.push(group);
    else {
      group.state = GROUP_CLOSED;
      withoutEmpty(group.children, filled);
    }
  }
  return filled;
}

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
const GROUP_REGISTERED = 1;
/** The group waits for its parent group. */
const GROUP_OPEN = 2;
/** The client knows the group, and its parts run. */
const GROUP_ANNOUNCED = 3;
const GROUP_CLOSED = 4;

/** The fields that one usage defers in one object of the response. They are delivered together. */
class Group {
  state: number = GROUP_CREATED;
  /** Its id in the payloads, from its announcement until its completion. */
  id: string | undefined = undefined;
  /** The parts that the group has to deliver. */
  readonly parts: Set<Part> = new Set();
  /** The number of parts that have not succeeded. */
  openParts = 0;
  readonly children: Group[] = [];
  readonly usage: DeferUsage;
  readonly path: ResponsePath | undefined;
  readonly parent: Group | undefined;

  constructor(usage: DeferUsage, path: ResponsePath | undefined, parent: Group | undefined) {
    this.usage = usage;
    this.path = path;
    this.parent = parent;
  }
}

const PART_WAITING = 0;
const PART_RUNNING = 1;
const PART_SUCCEEDED = 2;
const PART_FAILED = 3;
/** The part was delivered or cancelled. */
const PART_REMOVED = 4;

/** Fields of one object that are executed together, after the payload that contains the object. */
export class Part {
  state: number = PART_WAITING;
  /** The execution of the part while it runs. */
  ex: Execution | undefined = undefined;
  /** The JSON text of the fields, and their errors. */
  data = '';
  errors: readonly FieldError[] | undefined = undefined;
  /** The error that has propagated to the object. */
  failure: FieldError | undefined = undefined;
  /** The parts that the execution of this part has found. */
  found: Found | undefined = undefined;
  /** The groups that deliver the part: the first of them that completes. */
  readonly groups: readonly Group[];
  readonly path: ResponsePath | undefined;
  readonly source: unknown;
  /** Writes the fields. Throws if one of them makes the object null. */
  readonly write: ObjectRun;

  constructor(groups: readonly Group[], path: ResponsePath | undefined, source: unknown, write: ObjectRun) {
    this.groups = groups;
    this.path = path;
    this.source = source;
    this.write = write;
  }
}

/** The groups of one operation by the path of their objects. All its executions share them. */
type GroupsByPath = Map<ResponsePath | undefined, readonly Group[]>;

/** The deferred parts that one execution finds: that of the first payload, or of another part. */
export class Found {
  readonly groups: Group[] = [];
  parts: Part[] = [];
  readonly groupsByPath: GroupsByPath;

  constructor(groupsByPath: GroupsByPath) {
    this.groupsByPath = groupsByPath;
  }

  /** Creates the groups of an object, before its fields are executed. */
  openGroups(usages: readonly DeferUsage[], path: ResponsePath | undefined): void {
    const groups: Group[] = [];
    for (const usage of usages) {
      const { parent } = usage;
      // The enclosing usage may belong to the same object.
      const sibling = parent === undefined ? undefined : groups[parent.index];
      const enclosing =
        parent === undefined ? undefined : sibling?.usage === parent ? sibling : this.groupOf(parent, path);
      groups.push(new Group(usage, path, enclosing));
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
  groupOf(usage: DeferUsage, path: ResponsePath | undefined): Group {
    for (let at = path; ; at = at.prev) {
      const group = this.groupsByPath.get(at)?.[usage.index];
      if (group?.usage === usage) return group;
      if (at === undefined) throw new TypeError('The group of a deferred field does not exist');
    }
  }
}

/** Formats errors as JSON text. */
type ErrorsText = (errors: readonly FieldError[]) => string;

/** Writes the payloads of one operation as JSON text. Gets the results of groups in the order of a payload. */
export interface PayloadText {
  /** See `RemainingResults`. */
  readonly openIds?: ReadonlySet<string>;
  /** The parts that a group delivers. */
  values(group: Group, parts: readonly Part[]): void;
  /** A group is complete; its groups below begin. */
  success(group: Group, next: readonly Group[]): void;
  failure(group: Group, error: FieldError): void;
  /** Returns the members of the first payload after `data`. */
  first(groups: readonly Group[]): string;
  /** Returns the payload of what was written since the last one; undefined if nothing was. */
  take(hasNext: boolean): string | undefined;
}

export function createPayloadText(format: IncrementalFormat, errorsText: ErrorsText): PayloadText {
  return format === 'v0.2' ? new CurrentText(errorsText) : new LegacyText(errorsText);
}

/** The format since 2024: `pending` announces groups, `completed` ends them. */
class CurrentText implements PayloadText {
  readonly openIds = new Set<string>();
  #nextId = 0;
  #isEmpty = true;
  #pending: string[] = [];
  #incremental: string[] = [];
  #completed: { readonly id: string; readonly error: FieldError | undefined }[] = [];
  readonly #errorsText: ErrorsText;

  constructor(errorsText: ErrorsText) {
    this.#errorsText = errorsText;
  }

  first(groups: readonly Group[]): string {
    return `,"pending":[${groups.map((group) => this.#announce(group)).join()}],"hasNext":true`;
  }

  values(group: Group, parts: readonly Part[]): void {
    this.#isEmpty = false;
    for (const part of parts) {
      const { id, depth } = nearestGroup(group, part);
      const subPath = keysOf(part.path).slice(depth);
      const errors = part.errors === undefined ? '' : `,"errors":${this.#errorsText(part.errors)}`;
      const rest = subPath.length === 0 ? '' : `,"subPath":${JSON.stringify(subPath)}`;
      this.#incremental.push(`{"id":"${id}","data":${part.data}${errors}${rest}}`);
    }
  }

  success(group: Group, next: readonly Group[]): void {
    this.#complete(group, undefined);
    for (const each of next) this.#pending.push(this.#announce(each));
  }

  failure(group: Group, error: FieldError): void {
    this.#complete(group, error);
  }

  take(hasNext: boolean): string | undefined {
    if (this.#isEmpty && hasNext) return undefined;
    // Errors of parts are formatted, and reported, before the errors of groups.
    const completed = this.#completed.map(({ id, error }) => {
      const errors = error === undefined ? '' : `,"errors":${this.#errorsText([error])}`;
      return `{"id":"${id}"${errors}}`;
    });
    const text =
      `{"hasNext":${hasNext}` +
      member('pending', this.#pending) +
      member('incremental', this.#incremental) +
      `${member('completed', completed)}}`;
    for (const { id } of this.#completed) this.openIds.delete(id);
    this.#isEmpty = true;
    this.#pending = [];
    this.#incremental = [];
    this.#completed = [];
    return text;
  }

  #announce(group: Group): string {
    const id = String(this.#nextId++);
    group.id = id;
    this.openIds.add(id);
    return `{"id":"${id}","path":${pathText(group.path)}${labelText(group)}}`;
  }

  #complete(group: Group, error: FieldError | undefined): void {
    this.#isEmpty = false;
    this.#completed.push({ id: group.id ?? '', error });
    group.id = undefined;
  }
}

/** The announced group of a part with the longest path. */
function nearestGroup(group: Group, { groups }: Part): { id: string | undefined; depth: number } {
  let nearest = { id: group.id, depth: depthOf(group.path) };
  for (const other of groups) {
    if (other === group || other.id === undefined) continue;
    const depth = depthOf(other.path);
    if (depth > nearest.depth) nearest = { id: other.id, depth };
  }
  return nearest;
}

/** The format of 2022: every part has its path. */
class LegacyText implements PayloadText {
  #isEmpty = true;
  #incremental: string[] = [];
  readonly #errorsText: ErrorsText;

  constructor(errorsText: ErrorsText) {
    this.#errorsText = errorsText;
  }

  first(): string {
    return ',"hasNext":true';
  }

  values(group: Group, parts: readonly Part[]): void {
    for (const { data, errors } of parts) this.#add(group, data, errors);
  }

  success(): void {
    this.#isEmpty = false;
  }

  failure(group: Group, error: FieldError): void {
    this.#isEmpty = false;
    this.#add(group, 'null', [error]);
  }

  take(hasNext: boolean): string | undefined {
    if (this.#isEmpty && hasNext) return undefined;
    const text = `{"hasNext":${hasNext}${member('incremental', this.#incremental)}}`;
    this.#isEmpty = true;
    this.#incremental = [];
    return text;
  }

  #add(group: Group, data: string, errors: readonly FieldError[] | undefined): void {
    const errorsText = errors === undefined ? '' : `,"errors":${this.#errorsText(errors)}`;
    this.#incremental.push(`{"data":${data},"path":${pathText(group.path)}${errorsText}${labelText(group)}}`);
  }
}

const pathText = (path: ResponsePath | undefined): string => JSON.stringify(keysOf(path));

const labelText = ({ usage: { label } }: Group): string =>
  label === undefined ? '' : `,"label":${JSON.stringify(label)}`;

const member = (name: string, values: readonly string[]): string =>
  values.length === 0 ? '' : `,"${name}":[${values.join()}]`;

function depthOf(path: ResponsePath | undefined): number {
  let depth = 0;
  for (let at = path; at !== undefined; at = at.prev) depth++;
  return depth;
}
