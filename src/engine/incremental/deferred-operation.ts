import type { ResponsePath } from 'graphql';
import { UnusedValues } from '../../execution/guard/unused-values.ts';
import type { ExecutionInputs } from '../../execution/types.ts';
import { dataText } from '../result/segments.ts';
import { DeferredParts, type GroupsByPath, PART_FAILED, PART_SUCCEEDED } from '../run/deferred-parts.ts';
import { abortExecution, Execution, endSyncRun, Pending, releaseExecution } from '../run/execution.ts';
import { type ErrorPosition, type FieldError, toFieldError } from '../run/field-error.ts';
import { attachChildren, takePending } from '../run/pending.ts';
import type { Program } from '../run/program.ts';
import { type AbortScope, createInfoFunctions } from '../run/resolve-info.ts';
import type { Found, Part } from './delivery-groups.ts';
import type { PartRunner } from './work-queue.ts';

/** The position of the object that a part belongs to. */
const PART: ErrorPosition = { field: undefined, nullable: true, shape: 'object' };

/** The coerced variables of an operation (see `Execution`). */
interface Variables {
  readonly variables: Record<string, unknown>;
  readonly values: Record<string, unknown>;
}

/** Receives the ends of parts. */
export interface PartListener {
  onEnd(part: Part, state: typeof PART_SUCCEEDED | typeof PART_FAILED): void;
  /** A part has a value that cannot be written as JSON. */
  onFatalError(error: unknown): void;
}

/**
 * One operation with deferred parts: the state that the executions of the first payload and of its parts
 * share.
 */
export class DeferredOperation implements PartRunner, AbortScope {
  /** All payloads were delivered, or the client has disconnected. */
  finished = false;
  abortResolvers: ((reason?: unknown) => void) | undefined = undefined;
  listener: PartListener | undefined = undefined;
  readonly inputs: ExecutionInputs;
  readonly #program: Program;
  readonly #variables: Variables;
  readonly #infoFunctions: Execution['infoFunctions'];
  readonly #groupsByPath: GroupsByPath<Execution> = new Map();
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
    ex.deferred = new DeferredParts(this.#groupsByPath);
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

  /**
   * Removes the parts of objects that an error has made null. Returns whether parts are left.
   */
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
      this.listener?.onFatalError(error);
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
