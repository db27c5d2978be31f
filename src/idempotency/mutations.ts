import { createHash, randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { GraphQLError } from 'graphql';
import type { MaybePromise } from '../../types/connect.ts';
import { isPublicError } from '../core/errors.ts';
import type {
  EngineSettings,
  ExecuteOperation,
  ExecutionInputs,
  ExecutionOutcome,
  PreparedOperation,
} from '../execution/types.ts';
import { assertSync, isString, wrongReturnValue } from '../options/rules.ts';
import { IDEMPOTENCY_OPTIONS } from '../options/scopes.ts';
import { type Claim, type KeyStore, type KeyUse, MemoryKeys, RedisKeys } from './keys.ts';
import type { IdempotencySettings } from './options.ts';
import { type Compile, fingerprint, MutationPlan, type RootField } from './plan.ts';

/** A mutation that is prepared, and its plan once it was needed. */
export interface IdempotentOperation {
  readonly prepared: PreparedOperation;
  readonly compile: Compile;
  readonly formatErrors: EngineSettings['formatErrors'];
  plan: MutationPlan | undefined;
}

/** A root field with its key. */
interface KeyedField {
  readonly field: RootField;
  readonly use: KeyUse;
}

/** 1 to 255 visible ASCII characters: a repeated header is joined with a space, and thus refused. */
const KEY = /^[\x21-\x7e]{1,255}$/;
const HEADER = 'idempotency-key';

/** A larger result is not stored, and leaves its key unknown. */
const MAX_RESULT_LENGTH = 8 * 1024 * 1024;
/** The response waits no longer for the store of its result. */
const STORE_MILLISECONDS = 2000;
/** How long the check of Redis at the start waits for its connection. */
const START_MILLISECONDS = 30_000;
/** Milliseconds between two attempts. */
const PAUSE = { first: 20, last: 500 };

/** Executes the mutations of one handler, those with a key once. */
export class IdempotentMutations {
  readonly #settings: IdempotencySettings;
  readonly #store: KeyStore;
  readonly #report: (error: unknown) => void;
  /** Whether the store has failed, which is reported once. */
  #hasFailed = false;

  private constructor(settings: IdempotencySettings, store: KeyStore, report: (error: unknown) => void) {
    this.#settings = settings;
    this.#store = store;
    this.#report = report;
  }

  static async create(
    settings: IdempotencySettings,
    report: (error: unknown) => void,
  ): Promise<IdempotentMutations> {
    const { store } = settings;
    const keys = store === undefined ? await MemoryKeys.create(settings) : new RedisKeys(store, settings);
    const created = new IdempotentMutations(settings, keys, report);
    if (store !== undefined) void created.#checkAtStart();
    return created;
  }

  execute(operation: IdempotentOperation, inputs: ExecutionInputs): MaybePromise<ExecutionOutcome> {
    operation.plan ??= new MutationPlan(operation.prepared);
    const { plan } = operation;
    const fields = plan.fields(inputs.variableValues ?? {});
    const keys = this.#keysOf(plan, fields, inputs);
    if (keys instanceof Refusal) return keys.outcome(operation, inputs);
    if (keys.size === 0) return operation.prepared.execute(inputs);
    return this.#executeOnce(operation, fields, keys, inputs);
  }

  /** Returns the keys of the fields that have one, each with what separates it from equal keys of other uses. */
  #keysOf(
    plan: MutationPlan,
    fields: readonly RootField[],
    inputs: ExecutionInputs,
  ): ReadonlyMap<RootField, string> | Refusal {
    const header = headerOf(inputs);
    const keys = new Map<RootField, string>();
    const counts = new Map<string, number>();
    for (const field of fields) {
      const { name } = field;
      const given = plan.keysOf(field, inputs.variableValues ?? {});
      const [own = header] = given;
      if (own === undefined) {
        if (this.#requires(name)) return missingKey(name);
        continue;
      }
      if (new Set(given).size > 1 || !isString(own) || !KEY.test(own)) return wrongKey(name);
      // The header is the key of the whole request, so it is counted which use of it this is.
      const count = counts.get(name) ?? 0;
      counts.set(name, count + 1);
      const { request = '', variables = '' } = inputs.index ?? {};
      keys.set(field, given.length > 0 ? own : `${own} ${request} ${variables} ${count}`);
    }
    return keys;
  }

  #requires(name: string): boolean {
    const { required } = this.#settings;
    return typeof required === 'boolean' ? required && !name.startsWith('__') : required.includes(name);
  }

  async #executeOnce(
    operation: IdempotentOperation,
    fields: readonly RootField[],
    keys: ReadonlyMap<RootField, string>,
    inputs: ExecutionInputs,
  ): Promise<ExecutionOutcome> {
    const plan = operation.plan as MutationPlan;
    const user = this.#userOf(inputs);
    const keyed: KeyedField[] = [];
    for (const [field, key] of keys) {
      const print = await fingerprint(plan, field, inputs.variableValues ?? {});
      const id = createHash('sha256')
        .update(JSON.stringify([user, field.name, key]))
        .digest('base64url');
      if (keyed.some(({ use }) => use.id === id)) return wrongKey(field.name).outcome(operation, inputs);
      keyed.push({ field, use: { id, print, owner: randomUUID() } });
    }
    const claims = await this.#claimAll(keyed, inputs);
    if (claims instanceof Refusal) return claims.outcome(operation, inputs);
    return this.#run({ ...operation, plan }, fields, claims, inputs);
  }

  #userOf({ origin, contextValue }: ExecutionInputs): unknown {
    const returned = this.#settings.user(origin?.socket ?? origin?.request, contextValue);
    const user = assertSync(returned, IDEMPOTENCY_OPTIONS, 'user') ?? null;
    if (user === null || isString(user)) return user;
    if (typeof user === 'number') return String(user);
    throw wrongReturnValue(IDEMPOTENCY_OPTIONS, 'user', user, 'a string, a number, or null');
  }

  /** Takes all keys before anything is executed, in one order: two operations never wait for each other. */
  async #claimAll(
    keyed: readonly KeyedField[],
    inputs: ExecutionInputs,
  ): Promise<ReadonlyMap<RootField, Claimed> | Refusal> {
    const claims = new Map<RootField, Claimed>();
    const sorted = [...keyed].sort((a, b) => (a.use.id < b.use.id ? -1 : 1));
    for (const { field, use } of sorted) {
      const claim = await this.#claim(use, inputs);
      if (claim.kind === 'free' || claim.kind === 'done') {
        claims.set(field, { claim, use });
        continue;
      }
      for (const taken of claims.values()) {
        if (taken.claim.kind === 'free') void this.#insist(() => this.#store.release(taken.use));
      }
      return refusalOf(claim.kind, field.name);
    }
    return claims;
  }

  /** Takes a key, or waits for the operation that has it, or for the store. */
  async #claim(use: KeyUse, { origin }: ExecutionInputs): Promise<Claim | { readonly kind: 'unavailable' }> {
    const end = performance.now() + this.#settings.wait;
    let isUncertain = false;
    for (let pause = PAUSE.first; ; pause = Math.min(pause * 2, PAUSE.last)) {
      let claim: Claim | { readonly kind: 'unavailable' } = { kind: 'unavailable' };
      const { problem } = this.#store;
      try {
        if (problem !== undefined) throw problem;
        claim = await this.#store.claim(use);
        this.#hasFailed = false;
      } catch (error) {
        isUncertain ||= problem === undefined;
        this.#fail(error);
      }
      const isWaiting = claim.kind === 'running' || claim.kind === 'unavailable';
      if (isWaiting && performance.now() + pause < end && origin?.aborted !== true) {
        await delay(pause);
        continue;
      }
      // Redis may have executed a command whose reply was lost.
      if (claim.kind === 'unavailable' && isUncertain) void this.#insist(() => this.#store.release(use));
      return claim;
    }
  }

  async #run(
    { plan, prepared, compile }: RunOf,
    fields: readonly RootField[],
    claims: ReadonlyMap<RootField, Claimed>,
    inputs: ExecutionInputs,
  ): Promise<ExecutionOutcome> {
    // The result is stored whole, also if the client does not wait for it.
    inputs.incremental = undefined;
    inputs.outlivesClient = true;
    const running = new Set<KeyUse>();
    for (const { claim, use } of claims.values()) if (claim.kind === 'free') running.add(use);
    const timer = setInterval(() => this.#renewAll(running), this.#settings.lease / 3).unref();
    const outcomes: ExecutionOutcome[] = [];
    try {
      for (const field of fields) {
        const execute = fields.length === 1 ? prepared.execute : plan.executeOf(field, compile);
        const outcome = await this.#executeField(execute, claims.get(field), inputs, running);
        outcomes.push(outcome);
        // As within one execution: after a null that reaches the data, no other field is executed.
        if (fields.length > 1 && parse(outcome).data == null) break;
      }
    } finally {
      clearInterval(timer);
      for (const use of running) void this.#insist(() => this.#store.release(use));
    }
    return outcomes.length === 1 ? (outcomes[0] as ExecutionOutcome) : merge(outcomes);
  }

  /** Executes a field and stores its result, or returns the result that is stored. */
  async #executeField(
    execute: ExecuteOperation,
    claimed: Claimed | undefined,
    inputs: ExecutionInputs,
    running: Set<KeyUse>,
  ): Promise<ExecutionOutcome> {
    if (claimed === undefined) return execute(inputs);
    const { claim, use } = claimed;
    if (claim.kind === 'done') {
      inputs.setHeader?.('idempotency-replayed', 'true');
      return fromStored(claim.result);
    }
    let result: string | undefined;
    try {
      const outcome = await execute(inputs);
      // Invalid variables: no resolver was called.
      if (outcome.kind === 'refused') return outcome;
      result = toStored(outcome);
      running.delete(use);
      await this.#keep(use, result);
      return outcome;
    } catch (error) {
      // How far it came is not known.
      running.delete(use);
      await this.#keep(use, undefined);
      throw error;
    }
  }

  #renewAll(running: ReadonlySet<KeyUse>): void {
    for (const use of running) attempt(() => this.#store.renew(use)).catch(() => undefined);
  }

  /** Stores a result. The response waits for it, but not for long if the store is unavailable. */
  async #keep(use: KeyUse, result: string | undefined): Promise<void> {
    const timeout = new AbortController();
    const late = delay(STORE_MILLISECONDS, undefined, { signal: timeout.signal, ref: false });
    await Promise.race([this.#insist(() => this.#store.complete(use, result)), late.catch(() => undefined)]);
    timeout.abort();
  }

  /** Repeats a call until the store has executed it, or the key has ended. Never rejects. */
  async #insist(call: () => MaybePromise<unknown>): Promise<void> {
    const end = performance.now() + this.#settings.retention;
    for (let pause = PAUSE.first; performance.now() < end; pause = Math.min(pause * 2, PAUSE.last)) {
      try {
        await call();
        return;
      } catch (error) {
        this.#fail(error);
        await delay(pause, undefined, { ref: false });
      }
    }
  }

  #fail(error: unknown): void {
    if (!this.#hasFailed) this.#report(error);
    this.#hasFailed = true;
  }

  /** Reports a Redis that may evict keys before the first request. */
  async #checkAtStart(): Promise<void> {
    const use = { id: 'start', print: '', owner: randomUUID() };
    const end = performance.now() + START_MILLISECONDS;
    while (this.#store.problem !== undefined && performance.now() < end) {
      await delay(PAUSE.last, undefined, { ref: false });
    }
    try {
      await this.#store.claim(use);
      await this.#store.release(use);
    } catch (error) {
      this.#fail(error);
    }
  }
}

type RunOf = Pick<IdempotentOperation, 'prepared' | 'compile'> & { readonly plan: MutationPlan };

/** A key that the operation has taken, or whose result is stored. */
interface Claimed {
  readonly claim: Claim;
  readonly use: KeyUse;
}

/** Also an exception becomes a rejection. */
const attempt = async (call: () => MaybePromise<unknown>): Promise<unknown> => call();

/** The header of an HTTP request. That of a WebSocket's upgrade would be the key of all its operations. */
function headerOf({ origin }: ExecutionInputs): string | undefined {
  const value = origin?.socket === undefined ? origin?.request?.headers[HEADER] : undefined;
  if (value === undefined || Array.isArray(value)) return value?.join(' ');
  // The draft of the header has a string in quotes, which most clients omit.
  return /^".*"$/.test(value) ? value.slice(1, -1) : value;
}

/** An operation that is not executed. */
class Refusal {
  readonly #error: GraphQLError;
  readonly #status: number;

  constructor(status: number, code: string, message: string, headers: Record<string, string> = {}) {
    this.#status = status;
    this.#error = new GraphQLError(message, { extensions: { code, http: { status, headers } } });
  }

  outcome({ formatErrors }: IdempotentOperation, { origin }: ExecutionInputs): ExecutionOutcome {
    const errors = [this.#error];
    const body = JSON.stringify({ errors: formatErrors(errors, origin) });
    return { kind: 'refused', body, errors, status: this.#status };
  }
}

const missingKey = (name: string): Refusal =>
  new Refusal(
    400,
    'IDEMPOTENCY_KEY_REQUIRED',
    `The field "${name}" needs a key: send @idempotent(key:) or the header Idempotency-Key`,
  );

const wrongKey = (name: string): Refusal =>
  new Refusal(
    400,
    'IDEMPOTENCY_KEY_INVALID',
    `The field "${name}" needs one key of its own, with 1 to 255 visible ASCII characters`,
  );

function refusalOf(kind: 'running' | 'unknown' | 'other' | 'unavailable', name: string): Refusal {
  const subject = `The key of the field "${name}"`;
  const soon = { 'retry-after': '1' };
  if (kind === 'other') {
    const message = `${subject} was used for another request: the selection, arguments, variables and files must be equal`;
    return new Refusal(422, 'IDEMPOTENCY_KEY_REUSED', message);
  }
  if (kind === 'running') {
    const message = `${subject} belongs to a request in progress; repeat the request later`;
    return new Refusal(409, 'IDEMPOTENCY_IN_PROGRESS', message, soon);
  }
  if (kind === 'unknown') {
    const message = `${subject} belongs to a request that has failed, possibly after it had an effect; check that before you send another key`;
    return new Refusal(409, 'IDEMPOTENCY_UNKNOWN', message);
  }
  const message = `${subject} cannot be checked now; repeat the request later`;
  return new Refusal(503, 'IDEMPOTENCY_UNAVAILABLE', message, soon);
}

/** The text that is stored: what the errors say about the response, and the body. Undefined if it cannot be stored. */
function toStored({ kind, body, errors, rest, isMasked }: ExecutionOutcome): string | undefined {
  // A function of the option `engine` has returned a stream.
  if (rest !== undefined) return undefined;
  const visible = isMasked === true ? [] : errors.filter(isPublicError);
  const http = visible.map(({ extensions }) => extensions['http']).filter((value) => value !== undefined);
  const result = `${JSON.stringify({ kind, http })}\n${body.toString()}`;
  return result.length > MAX_RESULT_LENGTH ? undefined : result;
}

function fromStored(result: string): ExecutionOutcome {
  const end = result.indexOf('\n');
  const { kind, http }: { kind: ExecutionOutcome['kind']; http: unknown[] } = JSON.parse(
    result.slice(0, end),
  );
  // The errors were reported by the first execution. These only set the status and headers again.
  const errors = http.map((value) => new GraphQLError('Stored', { extensions: toExtensions(value) }));
  return { kind, body: result.slice(end + 1), errors };
}

/** Some packages declare the type of `http`. */
const toExtensions = (http: unknown): Record<string, unknown> => ({ http });

/** The members of a response. */
interface Members {
  readonly data?: object | null;
  readonly errors?: readonly object[];
  readonly extensions?: object;
}

const parse = ({ body }: ExecutionOutcome): Members => JSON.parse(body.toString());

/** Joins the results of the root fields of one operation. */
function merge(outcomes: readonly ExecutionOutcome[]): ExecutionOutcome {
  const parts = outcomes.map(parse);
  for (const outcome of outcomes) outcome.release?.();
  const errors = parts.flatMap((part) => part.errors ?? []);
  const isWhole = parts.every(({ data }) => data != null);
  const extensions = Object.assign({}, ...parts.map((part) => part.extensions));
  const body = JSON.stringify({
    ...(errors.length > 0 && { errors }),
    data: isWhole ? Object.assign({}, ...parts.map(({ data }) => data)) : null,
    ...(Object.keys(extensions).length > 0 && { extensions }),
  });
  return {
    kind: errors.length > 0 ? 'partial' : 'data',
    body,
    errors: outcomes.flatMap((outcome) => outcome.errors),
  };
}
