import type { GraphQLResolveInfo } from 'graphql';
import type { ExecutionInputs, ExecutionOutcome } from '../execution/types.ts';
import type { Fault } from './errors.ts';
import type { ResponsePath } from './plan.ts';
import { type BufferPool, OPENING, type Page } from './pool.ts';
import type { Program } from './program.ts';
import type { Slot } from './slots.ts';
import type { Sink } from './writer.ts';

/**
 * One execution. Synchronous stretches append to `buf`; what waits for a promise is a slot in `parts`, and the text
 * written since the last slot is the open segment, from `segment` to `pos`.
 */
export class Execution implements Sink {
  page: Page;
  buf: Buffer;
  view: DataView;
  readonly pool: BufferPool;
  pos: number = OPENING.length;
  segment: number = OPENING.length;
  /** The slots of the stretch that is running. */
  parts: Slot[] = [];
  /** A stretch is running: promises that settle meanwhile (foreign ones can) have to wait for its end. */
  busy = true;
  /** The answer is out: nothing may touch the buffer any more. */
  finished = false;
  faults: Fault[] | undefined = undefined;
  /** Positions that an error has made null; undefined in it is the whole of `data`. */
  nulled: Set<ResponsePath | undefined> | undefined = undefined;
  /** graphql 16: the error of an object that still waits for the siblings of the field that threw. */
  doom: Fault | undefined = undefined;
  /** The value of the slot being written has no JSON text: the length of the key to be left out with it. */
  omitted = 0;
  /** What an asynchronous execution calls when it is done. */
  answer: ((outcome: ExecutionOutcome) => void) | undefined = undefined;
  fail: ((reason: unknown) => void) | undefined = undefined;
  /** Stops listening for the client's leaving. */
  deaf: (() => void) | undefined = undefined;
  /** graphql 17: what `info` offers beside the data; made for the first resolver that wants info. */
  facilities: Pick<GraphQLResolveInfo, never> | undefined = undefined;
  abortResolvers: ((reason?: unknown) => void) | undefined = undefined;
  readonly program: Program;
  readonly inputs: ExecutionInputs;
  /** Coerced: a map (16), or `{ sources, coerced }` (17). */
  readonly variables: Record<string, unknown>;
  /** The coerced values by name. */
  readonly values: Record<string, unknown>;

  constructor(
    program: Program,
    inputs: ExecutionInputs,
    variables: Record<string, unknown>,
    values: Record<string, unknown>,
  ) {
    this.program = program;
    this.inputs = inputs;
    this.variables = variables;
    this.values = values;
    this.pool = program.pool;
    this.page = program.pool.take(program.expected);
    this.buf = this.page.buf;
    this.view = this.page.view;
  }
}
