import type { GraphQLError } from 'graphql';
import type { ExecutionOutcome, IncrementalFormat, RemainingResults } from '../../execution/types.ts';
import { isThenable } from '../../execution/types.ts';
import type { SharedPlans } from '../compile/shared-plans.ts';
import { compileRoot, type ProgramRun } from '../operation/execute.ts';
import { formatFieldErrors } from '../result/graphql-errors.ts';
import type { Execution } from '../run/execution.ts';
import { type Program, programOfParts } from '../run/program.ts';
import { compileDeferredRoot, createDeferredCompiler } from './compiler.ts';
import { DeferredOperation } from './deferred-operation.ts';
import type { Found } from './delivery-groups.ts';
import { type Grouping, REPEATED_FIELDS, SHARED_FIELDS } from './group-fields.ts';
import { createPayloadText, type PayloadText } from './payload-text.ts';
import { RemainingPayloads } from './remaining-payloads.ts';

const GROUPINGS: Readonly<Record<IncrementalFormat, Grouping>> = {
  'v0.2': SHARED_FIELDS,
  20220824: REPEATED_FIELDS,
};

/** Compiles one variant of an operation with `@defer`. */
export function compileIncrementally(
  program: Program,
  shared: SharedPlans,
  format: IncrementalFormat,
): ProgramRun {
  const compiler = createDeferredCompiler(program, shared, GROUPINGS[format]);
  const run = compileRoot(program, (ex) => compileDeferredRoot(compiler, ex));
  const partProgram = programOfParts(program);
  return (inputs, variables, values) => {
    const operation = new DeferredOperation(partProgram, inputs, { variables, values });
    const ex = operation.createExecution(program);
    const found = ex.deferred as Found;
    const nulledPaths: NonNullable<Execution['nulledPaths']> = new Set();
    ex.nulledPaths = nulledPaths;
    const finish = (outcome: ExecutionOutcome): ExecutionOutcome => {
      if (operation.removeNulled(found, nulledPaths)) {
        const text = createPayloadText(format, (errors) =>
          JSON.stringify(formatFieldErrors(errors, { program, inputs })),
        );
        return beginPayloads(outcome, operation, found, text);
      }
      operation.finish();
      return outcome;
    };
    const outcome = run(ex);
    if (!isThenable(outcome)) return finish(outcome);
    return outcome.then(finish, (error) => {
      operation.finish(error);
      throw error;
    });
  };
}

function beginPayloads(
  outcome: ExecutionOutcome,
  operation: DeferredOperation,
  found: Found,
  text: PayloadText,
): ExecutionOutcome {
  const rest = new RemainingPayloads(operation, text);
  return new FirstPayload(outcome, rest.begin(found), rest);
}

/** The outcome of the fields that are not deferred, with the members that announce the others. */
class FirstPayload implements ExecutionOutcome {
  readonly kind: ExecutionOutcome['kind'];
  readonly body: Buffer;
  readonly isMasked: boolean;
  readonly rest: RemainingResults;
  readonly #outcome: ExecutionOutcome;

  constructor(outcome: ExecutionOutcome, members: string, rest: RemainingResults) {
    const body = outcome.body as Buffer;
    this.kind = outcome.kind;
    this.body = Buffer.concat([body.subarray(0, -1), Buffer.from(`${members}}`)]);
    this.isMasked = outcome.isMasked === true;
    this.rest = rest;
    this.#outcome = outcome;
    outcome.release?.();
  }

  /** Some outcomes create their errors when they are read. */
  get errors(): readonly GraphQLError[] {
    return this.#outcome.errors;
  }
}
