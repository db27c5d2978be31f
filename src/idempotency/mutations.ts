import { createHash, randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { type FieldNode, GraphQLError, Kind, print } from 'graphql';
import type { LRUCache } from 'lru-cache';
import type { MaybePromise } from '../../types/connect.ts';
import type { RedisSource } from '../../types/redis.ts';
import type { UploadedFile } from '../../types/uploads.ts';
import { userOf } from '../core/caller.ts';
import { isPublicError } from '../core/errors.ts';
import { packages } from '../diagnostics/packages.ts';
import { fragmentsOf, visitFields } from '../execution/document.ts';
import type {
  EngineSettings,
  ErrorOrigin,
  ExecuteOperation,
  ExecutionInputs,
  ExecutionOutcome,
  PreparedOperation,
} from '../execution/types.ts';
import { UPLOADED } from '../http/body.ts';
import { withTimeLimit } from '../http/timers.ts';
import { IDEMPOTENCY_OPTIONS } from '../options/scopes.ts';
import { isObject, isString } from '../options/values.ts';
import type { RedisCommands } from '../redis/clients.ts';
import { commandsOf, RedisScript } from '../redis/commands.ts';
import type { IdempotencySettings } from './options.ts';

/** A prepared mutation. */
interface Mutation {
  readonly prepared: PreparedOperation;
  readonly formatErrors: EngineSettings['formatErrors'];
  /** What each fingerprint begins with; undefined before the first. */
  text?: string;
}

/** What a request says about its key, which belongs to one field: equal keys of other fields are other keys. */
type Key =
  | { readonly kind: 'none' }
  | { readonly kind: 'key'; readonly field: string; readonly value: string }
  | { readonly kind: 'refused'; readonly error: GraphQLError };

type Claimed = Claim | { readonly kind: 'unavailable' };

/** 1 to 255 visible ASCII characters: a repeated header is joined with a space, and thus refused. */
const KEY = /^[\x21-\x7e]{1,255}$/;
const HEADER = 'idempotency-key';

/** A larger result is not stored, and leaves its key unknown. */
const MAX_RESULT_LENGTH = 8 * 1024 * 1024;
/** The response waits no longer for the store of its result. */
const STORE_MILLISECONDS = 2000;
/** Milliseconds between two attempts. */
const PAUSE = { first: 20, last: 500 };
/**
 * Milliseconds: `lease` after the last sign of a process, its mutations are unknown; a repetition waits for `wait`. Tests
 * shorten them.
 */
export const TIMES = { lease: 15_000, wait: 5000 };
const PREFIX = 'espalier:idempotency:';

/** Executes the mutations of one handler, those with a key once. */
export class IdempotentMutations {
  readonly #settings: IdempotencySettings;
  readonly #store: KeyStore;
  readonly #report: (error: unknown) => void;
  /** Whether the store has failed, which is reported once. */
  #hasFailed = false;

  constructor(settings: IdempotencySettings, report: (error: unknown) => void) {
    const { redis, ttl } = settings;
    this.#settings = settings;
    this.#store = redis === undefined ? new MemoryKeys(ttl) : new RedisKeys(redis, ttl);
    this.#report = report;
    if (redis !== undefined) this.#tryStore();
  }

  /** Reports a Redis that may evict keys before the first request. */
  #tryStore(): void {
    const use = { id: 'start', print: '', owner: randomUUID() };
    void this.#insist(async () => {
      await this.#store.claim(use);
      await this.#store.release(use);
    });
  }

  /** Executes a mutation with `next`, or sends the result of an earlier one. */
  execute(
    mutation: Mutation,
    inputs: ExecutionInputs,
    next: ExecuteOperation,
  ): MaybePromise<ExecutionOutcome> {
    const key = this.#keyOf(mutation.prepared, inputs);
    if (key.kind === 'none') return next(inputs);
    if (key.kind === 'refused') return refuse(key.error, mutation, inputs.origin);
    return this.#executeOnce(mutation, key, inputs, next);
  }

  #keyOf(prepared: PreparedOperation, { variableValues = {}, index, origin }: ExecutionInputs): Key {
    const variable = variablesOf(prepared, variableValues);
    const fields = rootFields(prepared, variable);
    const [own, second] = fields.flatMap((field) => keysAt(field, variable));
    if (second !== undefined) {
      const message = 'Only one field of an operation may have @idempotent; send one operation for each key';
      return refused('IDEMPOTENCY_KEY_INVALID', message);
    }
    if (own !== undefined) return checked(own);
    const names = fields.map(({ name }) => name.value).filter((name) => !name.startsWith('__'));
    const [first] = names;
    const value = headerOf(origin);
    if (value !== undefined && first !== undefined) {
      // It is the key of the whole request, and thus of each operation of a batch.
      const { request = '', variables = '' } = index ?? {};
      return checked({ field: first, value }, ` ${request} ${variables}`);
    }
    const { required } = this.#settings;
    const name = names.find((each) => (typeof required === 'boolean' ? required : required.includes(each)));
    if (name === undefined) return { kind: 'none' };
    const message = `The field "${name}" needs a key: send @idempotent(key:) or the header Idempotency-Key`;
    return refused('IDEMPOTENCY_KEY_REQUIRED', message);
  }

  async #executeOnce(
    mutation: Mutation,
    { field, value }: Key & { readonly kind: 'key' },
    inputs: ExecutionInputs,
    next: ExecuteOperation,
  ): Promise<ExecutionOutcome> {
    const { origin } = inputs;
    const source = origin?.socket ?? origin?.request;
    const user = userOf(IDEMPOTENCY_OPTIONS, this.#settings.user, source, inputs) ?? null;
    const scope = JSON.stringify([user, field, value]);
    const id = createHash('sha256').update(scope).digest('base64url');
    const files: StoredFile[] = [];
    const text = textOf(mutation, inputs, files);
    // A mutation that continues without its client needs its files.
    const releases = files.map((file) => file[UPLOADED]());
    try {
      const use = { id, print: await fingerprint(text, files), owner: randomUUID() };
      const claim = await this.#claim(use, origin);
      if (claim.kind === 'free') return await this.#run(next, use, inputs);
      if (claim.kind !== 'done') return refuse(conflict(claim.kind, field), mutation, origin);
      inputs.setHeader?.('idempotency-replayed', 'true');
      return fromStored(claim.result);
    } finally {
      for (const release of releases) release();
    }
  }

  /** Takes a key, or waits for the operation that has it, or for the store. */
  async #claim(use: KeyUse, origin: ErrorOrigin | undefined): Promise<Claimed> {
    const end = performance.now() + TIMES.wait;
    let isUncertain = false;
    for (let pause = PAUSE.first; ; pause = longer(pause)) {
      let claim: Claimed = { kind: 'unavailable' };
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
      if (!isWaiting || performance.now() + pause >= end || origin?.aborted === true) {
        // Redis may have executed a command whose reply was lost.
        if (claim.kind === 'unavailable' && isUncertain) void this.#insist(() => this.#store.release(use));
        return claim;
      }
      await delay(pause);
    }
  }

  async #run(execute: ExecuteOperation, use: KeyUse, inputs: ExecutionInputs): Promise<ExecutionOutcome> {
    // The result is stored whole, also if the client does not wait for it.
    inputs.incremental = undefined;
    inputs.outlivesClient = true;
    const renew = async (): Promise<unknown> => this.#store.renew(use);
    const timer = setInterval(() => renew().catch(ignore), TIMES.lease / 3).unref();
    // After an exception it is not known how far the operation came.
    let end = (): MaybePromise<unknown> => this.#store.complete(use, undefined);
    try {
      const outcome = await execute(inputs);
      const result = toStored(outcome);
      // Invalid variables: no resolver was called.
      const wasRefused = outcome.kind === 'refused';
      end = () => (wasRefused ? this.#store.release(use) : this.#store.complete(use, result));
      return outcome;
    } finally {
      clearInterval(timer);
      await withTimeLimit(this.#insist(end), STORE_MILLISECONDS, () => new Error('late')).catch(ignore);
    }
  }

  /** Repeats a call until the store is available and has executed it, or the key has ended. Never rejects. */
  async #insist(call: () => MaybePromise<unknown>): Promise<void> {
    const end = performance.now() + this.#settings.ttl;
    for (let pause = PAUSE.first; performance.now() < end; pause = longer(pause)) {
      try {
        if (this.#store.problem === undefined) return void (await call());
      } catch (error) {
        this.#fail(error);
      }
      await delay(pause, undefined, { ref: false });
    }
  }

  #fail(error: unknown): void {
    if (!this.#hasFailed) this.#report(error);
    this.#hasFailed = true;
  }
}

const longer = (pause: number): number => Math.min(pause * 2, PAUSE.last);
const ignore = (): void => undefined;

/** The header of an HTTP request. That of a WebSocket's upgrade would be the key of all its operations. */
function headerOf(origin: ErrorOrigin | undefined): string | undefined {
  const value = origin?.socket === undefined ? origin?.request?.headers[HEADER] : undefined;
  if (value === undefined || Array.isArray(value)) return value?.join(' ');
  // The draft of the header has a string in quotes, which most clients omit.
  return /^".*"$/.test(value) ? value.slice(1, -1) : value;
}

function checked({ field, value }: Given, place = ''): Key {
  if (isString(value) && KEY.test(value)) return { kind: 'key', field, value: `${value}${place}` };
  return refused(
    'IDEMPOTENCY_KEY_INVALID',
    `The key of the field "${field}" needs 1 to 255 visible ASCII characters`,
  );
}

type Variable = (name: string) => unknown;

/** Returns the function that reads a variable, before its coercion. */
const variablesOf =
  (
    { operation: { variableDefinitions = [] } }: PreparedOperation,
    given: Readonly<Record<string, unknown>>,
  ): Variable =>
  (name) => {
    if (Object.hasOwn(given, name)) return given[name];
    const definition = variableDefinitions.find(({ variable }) => variable.name.value === name);
    const node = definition?.defaultValue;
    return node?.kind === Kind.STRING || node?.kind === Kind.BOOLEAN ? node.value : undefined;
  };

/** The fields at the root of an operation that its variables include. */
function rootFields(prepared: PreparedOperation, variable: Variable): FieldNode[] {
  const fields: FieldNode[] = [];
  visitFields(prepared, variable, (_type, node) => {
    fields.push(node);
    return [];
  });
  return fields;
}

/** A key as it was sent. */
interface Given {
  readonly field: string;
  readonly value: unknown;
}

/** The values of `@idempotent(key:)` at a field. */
const keysAt = ({ name, directives = [] }: FieldNode, variable: Variable): Given[] =>
  directives
    .filter((directive) => directive.name.value === 'idempotent')
    .map(({ arguments: [argument] = [] }) => {
      const node = argument?.value;
      const value =
        node?.kind === Kind.VARIABLE ? variable(node.name.value) : node?.kind === Kind.STRING && node.value;
      return { field: name.value, value };
    });

/**
 * Returns what the fingerprint of a request begins with: its operation, its variables, and the scopes of its caller that
 * the operation requires: the result must not reach a caller who has lost one. Files are collected.
 */
function textOf(
  mutation: Mutation,
  { variableValues: variables = {}, access }: ExecutionInputs,
  files: StoredFile[],
): string {
  const { document, operation } = mutation.prepared;
  mutation.text ??= [operation, ...fragmentsOf(document).values()].map(print).join('\n');
  const names = (operation.variableDefinitions ?? []).map(({ variable }) => variable.name.value);
  const used = names.filter((name) => Object.hasOwn(variables, name)).map((name) => [name, variables[name]]);
  return `${mutation.text}\n${canonical(Object.fromEntries(used), files)}${access?.storedKey ?? ''}`;
}

/** Returns the fingerprint of a request: of its text and the contents of its files. */
async function fingerprint(text: string, files: readonly StoredFile[]): Promise<string> {
  const hash = createHash('sha256').update(text);
  for (const { filename, mimetype, createReadStream } of files) {
    const content = createHash('sha256');
    for await (const chunk of createReadStream()) content.update(chunk);
    hash.update(JSON.stringify([filename, mimetype, content.digest('hex')]));
  }
  return hash.digest('base64url');
}

/** JSON text with the members of objects in the order of their names. Files are collected. */
function canonical(value: unknown, files: StoredFile[]): string {
  if (Array.isArray(value)) return `[${value.map((item) => canonical(item, files)).join()}]`;
  if (!isObject(value)) return JSON.stringify(value) ?? 'null';
  if (isFile(value)) return `file ${files.push(value)}`;
  const members = Object.keys(value).sort();
  return `{${members.map((name) => `${JSON.stringify(name)}:${canonical(value[name], files)}`).join()}}`;
}

/** An uploaded file with a function that keeps its content after the response, until the returned one is called. */
interface StoredFile extends UploadedFile {
  readonly [UPLOADED]: () => () => void;
}

const isFile = (value: object): value is StoredFile => Object.hasOwn(value, UPLOADED);

const CONFLICTS = {
  running: [409, 'IDEMPOTENCY_IN_PROGRESS', 'belongs to a request in progress; repeat the request later'],
  unknown: [
    409,
    'IDEMPOTENCY_UNKNOWN',
    'belongs to a request that has failed, possibly after it had an effect; check that before you send another key',
  ],
  other: [
    422,
    'IDEMPOTENCY_KEY_REUSED',
    'was used for another request: the selection, arguments, variables, files and scopes of the caller must be equal',
  ],
  unavailable: [503, 'IDEMPOTENCY_UNAVAILABLE', 'cannot be checked now; repeat the request later'],
} as const;

function conflict(kind: keyof typeof CONFLICTS, field: string): GraphQLError {
  const [status, code, reason] = CONFLICTS[kind];
  const headers = kind === 'running' || kind === 'unavailable' ? { 'retry-after': '1' } : {};
  return errorOf(status, code, `The key of the field "${field}" ${reason}`, headers);
}

const refused = (code: string, message: string): Key => ({
  kind: 'refused',
  error: errorOf(400, code, message),
});

const errorOf = (status: number, code: string, message: string, headers = {}): GraphQLError =>
  new GraphQLError(message, { extensions: { code, http: { status, headers } } });

function refuse(
  error: GraphQLError,
  { formatErrors }: Mutation,
  origin: ErrorOrigin | undefined,
): ExecutionOutcome {
  const body = JSON.stringify({ errors: formatErrors([error], origin) });
  return { kind: 'refused', body, errors: [error] };
}

/** The text that is stored: what the errors say about the response, and the body. Undefined if it cannot be stored. */
function toStored(outcome: ExecutionOutcome): string | undefined {
  const { kind, body } = outcome;
  // A function of the option `engine` has returned a stream.
  if (outcome.rest !== undefined) return undefined;
  const visible = outcome.isMasked === true ? [] : outcome.errors.filter(isPublicError);
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

interface KeyUse {
  /** Where the key is stored: a hash of the key, its user and its field. */
  readonly id: string;
  /** The fingerprint of what was requested with the key. */
  readonly print: string;
  /** A random value, so that no other process stores a result for this one. */
  readonly owner: string;
}

/**
 * The state of a key. `free`: it belongs to the caller from now on. `done`: it has a result. `running`: another operation
 * has it. `unknown`: that operation gives no sign of life, and may have had an effect. `other`: it was used for another
 * request.
 */
type Claim =
  | { readonly kind: 'free' | 'running' | 'unknown' | 'other' }
  | { readonly kind: 'done'; readonly result: string };

/** Keeps keys. Every call may be repeated. A promise rejects if the store is unavailable. */
interface KeyStore {
  /** Undefined, or the reason why a call cannot even be sent. */
  readonly problem: Error | undefined;
  /** Takes a key that is free. */
  claim(use: KeyUse): MaybePromise<Claim>;
  /** Says that the operation is running. */
  renew(use: KeyUse): MaybePromise<unknown>;
  /** Stores the result. Without one the key is unknown from now on. */
  complete(use: KeyUse, result: string | undefined): MaybePromise<unknown>;
  /** Makes the key of an operation free that was not executed. */
  release(use: KeyUse): MaybePromise<unknown>;
}

interface Ended {
  readonly print: string;
  readonly result: string | undefined;
}

const MAX_BYTES = 64 * 1024 * 1024;
/** An estimate of the bytes of an entry without its result. */
const ENTRY_BYTES = 500;

/** The keys of one process. Above the limit of bytes the oldest results are removed, never a running operation. */
class MemoryKeys implements KeyStore {
  readonly problem = undefined;
  readonly #running = new Map<string, KeyUse>();
  readonly #ended: LRUCache<string, Ended>;

  constructor(ttl: number) {
    const sizeCalculation = ({ result = '' }: Ended): number => ENTRY_BYTES + result.length;
    this.#ended = new (packages.lruCache().LRUCache)({ maxSize: MAX_BYTES, ttl, sizeCalculation });
  }

  claim(use: KeyUse): Claim {
    const running = this.#running.get(use.id);
    // `peek`: a repetition does not make a key younger than the others.
    const ended = running === undefined ? this.#ended.peek(use.id) : undefined;
    const known = running ?? ended;
    if (known === undefined) {
      this.#running.set(use.id, use);
      return { kind: 'free' };
    }
    if (known.print !== use.print) return { kind: 'other' };
    if (ended === undefined) return { kind: 'running' };
    return ended.result === undefined ? { kind: 'unknown' } : { kind: 'done', result: ended.result };
  }

  renew(): void {}

  complete({ id, print }: KeyUse, result: string | undefined): void {
    this.#running.delete(id);
    this.#ended.set(id, { print, result });
  }

  release({ id }: KeyUse): void {
    this.#running.delete(id);
  }
}

const TIMEOUT_MILLISECONDS = 2000;

class RedisKeys implements KeyStore {
  readonly #redis: RedisCommands;
  readonly #ttl: number;

  constructor(redis: RedisSource, ttl: number) {
    this.#redis = commandsOf(redis);
    this.#ttl = Math.ceil(ttl);
  }

  get problem(): Error | undefined {
    const { problem } = this.#redis;
    return problem && named(problem);
  }

  async claim(use: KeyUse): Promise<Claim> {
    const [kind, detail = ''] = await this.#run(CLAIM, use, '');
    if (kind === 'evicts') {
      throw new Error(
        `idempotency: Redis may evict keys (maxmemory-policy ${detail}), and a repeated mutation would be executed twice; set maxmemory-policy to noeviction`,
      );
    }
    return kind === 'done' ? { kind, result: detail } : { kind: kind as Exclude<Claim['kind'], 'done'> };
  }

  async renew(use: KeyUse): Promise<void> {
    await this.#run(RENEW, use, '');
  }

  async complete(use: KeyUse, result: string | undefined): Promise<void> {
    await (result === undefined ? this.#run(ABANDON, use, '') : this.#run(COMPLETE, use, result));
  }

  async release(use: KeyUse): Promise<void> {
    await this.#run(RELEASE, use, '');
  }

  async #run(script: RedisScript, { id, print, owner }: KeyUse, result: string): Promise<readonly string[]> {
    const inputs = [print, owner, TIMES.lease, this.#ttl, result] as const;
    try {
      const reply = await script.run(this.#redis, TIMEOUT_MILLISECONDS, PREFIX + id, ...inputs);
      return reply as string[];
    } catch (error) {
      throw named(error as Error);
    }
  }
}

/** Says which option an error of Redis belongs to. */
const named = (cause: Error): Error => new Error(`idempotency: ${cause.message}`, { cause });

/**
 * Creates a script. A record has the fingerprint, the owner, the time until which the owner counts as running, and the
 * result. If Redis has lost the record of a running operation, its owner writes it again.
 */
const script = (body: string): RedisScript =>
  new RedisScript(`
local key, print, owner, lease, ttl, result = KEYS[1], ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local known = redis.call('HMGET', key, 'print', 'owner', 'until', 'result')
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local function write(...)
  redis.call('HSET', key, 'print', print, 'owner', owner, ...)
  redis.call('PEXPIRE', key, ttl)
end
local isOwn = not known[1] or known[2] == owner
${body}`);

const CLAIM = script(`
local info = redis.pcall('INFO', 'memory')
local policy = type(info) == 'string' and string.match(info, 'maxmemory_policy:([%w-]+)')
if policy and policy ~= 'noeviction' then return {'evicts', policy} end
if known[1] and known[1] ~= print then return {'other'} end
if known[4] then return {'done', known[4]} end
if isOwn then
  write('until', string.format('%.0f', now + lease))
  return {'free'}
end
return {tonumber(known[3]) > now and 'running' or 'unknown'}`);

const RENEW = script(`
if isOwn and not known[4] then write('until', string.format('%.0f', now + lease)) end
return {'ok'}`);

const COMPLETE = script(`
if isOwn then write('result', result) end
return {'ok'}`);

const ABANDON = script(`
if isOwn and not known[4] then write('until', '0') end
return {'ok'}`);

const RELEASE = script(`
if known[2] == owner and not known[4] then redis.call('DEL', key) end
return {'ok'}`);
