import {
  defaultFieldResolver,
  defaultTypeResolver,
  type GraphQLSchema,
  isObjectType,
  printSchema,
} from 'graphql';
import { createErrorFormatter, createErrorMask } from '../../src/core/errors.ts';
import { batchResolverOf } from '../../src/execution/resolve-many.ts';
import type { EngineSettings } from '../../src/execution/types.ts';
import { type Behaviour, type Profile, source } from './behaviour.ts';
import { readChoices } from './choices.ts';
import { engines, outcomeOf, prepare, settingsOf, unguardedGraphqlJs, unwritable } from './compare.ts';
import { type RandomQuery, randomQuery } from './random-query.ts';
import { type RandomSchema, randomSchema } from './random-schema.ts';
import { takeEvents } from './trace-recorder.ts';

export const PROFILES: Readonly<Record<string, Profile>> = {
  'synchronous without errors': { late: 0, fails: 0, nulls: 20, strange: 0, long: 40 },
  'synchronous with errors': { late: 0, fails: 90, nulls: 80, strange: 60, long: 10 },
  'promises without errors': { late: 400, fails: 0, nulls: 20, strange: 0, long: 40 },
  'promises with errors': { late: 400, fails: 90, nulls: 60, strange: 40, long: 10 },
  'promises everywhere, many errors': { late: 850, fails: 160, nulls: 60, strange: 30, long: 10 },
  'few errors': { late: 300, fails: 12, nulls: 10, strange: 8, long: 20 },
};

/** A case: the bytes that schema and query are generated from, and the seed of the resolvers. */
export interface FuzzCase {
  readonly bytes: Uint8Array;
  readonly seed: number;
  readonly profile: string;
}

/** The observable result of a request: the response, the calls of resolvers and the events of tracing channels. */
interface Result {
  readonly text: string;
  readonly calls: readonly string[];
  readonly events: readonly string[];
}

/** Several executions of one operation; the last two are concurrent. */
export interface Executions {
  readonly results: readonly Result[];
  /** Unhandled rejections; graphql-js without its guard leaves some. */
  readonly unhandled: readonly unknown[];
  readonly hasAsyncLists: boolean;
}

interface Setting {
  readonly random: RandomSchema;
  readonly query: RandomQuery;
}

function settingOf({ bytes }: FuzzCase): Setting {
  const choices = readChoices(bytes);
  const random = randomSchema(choices);
  return { random, query: randomQuery(choices, random.schema) };
}

/** The executions of one case under graphql-js without and with its guard, and under the compiled engine. */
interface Compared {
  readonly reference: Executions;
  readonly guarded: Executions;
  readonly ours: Executions;
  /** Whether every result can be written as JSON. */
  readonly isWritable: boolean;
}

export async function both(fuzzed: FuzzCase): Promise<Compared> {
  const setting = settingOf(fuzzed);
  unwritable.count = 0;
  const restore = useResolvers(setting.random.schema);
  const reference = await execute(unguardedGraphqlJs, setting, fuzzed);
  restore();
  const isWritable = unwritable.count === 0;
  const guarded = await execute(engines.graphqlJs, setting, fuzzed);
  const ours = await execute(engines.compiled, setting, fuzzed);
  return { reference, guarded, ours, isWritable };
}

/** Turns batch resolvers into resolvers, since graphql-js without the guard knows no others, until it is undone. */
function useResolvers(schema: GraphQLSchema): () => void {
  const undo: (() => void)[] = [];
  for (const type of Object.values(schema.getTypeMap()).filter(isObjectType)) {
    for (const field of Object.values(type.getFields())) {
      const { extensions } = field;
      const resolve = batchResolverOf({ ...field }, type);
      if (resolve === undefined) continue;
      Object.assign(field, { resolve, extensions: {} });
      undo.push(() => Object.assign(field, { resolve: undefined, extensions }));
    }
  }
  return () => {
    for (const each of undo) each();
  };
}

/** Half of the cases mask their errors; some have a `fieldResolver` and a `typeResolver`. */
function optionsOf(seed: number): EngineSettings {
  const reporter = { report: () => undefined };
  const options = { formatError: undefined };
  const format = { debug: seed % 4 === 1, hideSuggestions: false };
  const masking = {
    formatErrors: createErrorFormatter(options, reporter, format),
    maskError: createErrorMask(options, reporter, format),
  };
  const resolving = {
    fieldResolver: (...all: Parameters<typeof defaultFieldResolver>) => defaultFieldResolver(...all),
    typeResolver: (...all: Parameters<typeof defaultTypeResolver>) => defaultTypeResolver(...all),
  };
  return settingsOf({ ...(seed % 2 === 1 ? masking : {}), ...(seed % 7 === 0 ? resolving : {}) });
}

async function execute(
  engine: (typeof engines)['compiled'],
  { random, query }: Setting,
  { seed, profile }: FuzzCase,
): Promise<Executions> {
  const unhandled: unknown[] = [];
  const notice = (reason: unknown): void => {
    unhandled.push(reason);
  };
  process.on('unhandledRejection', notice);
  const run = prepare(engine, random.schema, query.text, optionsOf(seed));
  const results: Result[] = [];
  let hasAsyncLists = false;
  for (const [index, variableValues] of query.variables.entries()) {
    const behaviour: Behaviour = {
      schema: random.schema,
      seed: seed + index,
      profile: PROFILES[profile] as Profile,
      calls: [],
      open: 0,
    };
    random.use(behaviour);
    const respond = (values: Record<string, unknown>): Promise<string> =>
      outcomeOf(() => run({ rootValue: source(behaviour, query.root, ''), variableValues: values }));
    const text = await respond(variableValues);
    const calls = [...behaviour.calls];
    await untilIdle(behaviour);
    results.push({ text, calls, events: takeEvents() });
    hasAsyncLists ||= behaviour.hasAsyncLists === true;
    if (index === 0) continue;
    const both = await Promise.all([respond(variableValues), respond(query.variables[0] ?? {})]);
    results.push(...both.map((overlapping) => ({ text: overlapping, calls: [], events: [] })));
    await untilIdle(behaviour);
    await abortAfter(seed % 4, (signal) =>
      run({ rootValue: source(behaviour, query.root, ''), variableValues, signal }),
    );
    await untilIdle(behaviour);
    takeEvents();
    hasAsyncLists ||= behaviour.hasAsyncLists === true;
  }
  // Rejections that graphql-js leaves must not count for the next execution.
  for (let turn = 0; turn < 3; turn++) await new Promise(setImmediate);
  process.off('unhandledRejection', notice);
  return { results, unhandled, hasAsyncLists };
}

/** Executes an operation whose client disconnects; only unhandled rejections matter. */
async function abortAfter(turns: number, run: (signal: AbortSignal) => unknown): Promise<void> {
  const controller = new AbortController();
  const outcome = (async () => run(controller.signal))().catch(() => undefined);
  for (let turn = 0; turn < turns; turn++) await undefined;
  controller.abort(new Error('disconnected'));
  await outcome;
}

/** Waits for promises that the engine no longer needs, so that they do not affect the next execution. */
async function untilIdle(behaviour: Behaviour): Promise<void> {
  do await new Promise(setImmediate);
  while (behaviour.open > 0);
}

/** Describes the difference between the engines; undefined if the results are equal. */
export function difference({ reference, guarded, ours, isWritable }: Compared): string | undefined {
  if (ours.unhandled.length > 0) return `unhandled: ${ours.unhandled.map(String).join()}`;
  if (guarded.unhandled.length > 0) return `unhandled by the guard: ${guarded.unhandled.map(String).join()}`;
  // The compiled engine fails at the first such value, graphql-js after it has completed all others.
  if (!isWritable || ours.results.some(({ text }) => text.includes('serialize a BigInt'))) return undefined;
  for (const [index, theirs] of reference.results.entries()) {
    const found = differs(theirs, ours.results[index] as Result);
    if (found !== undefined) return `response ${index + 1}\n${found}`;
    // The guard delays the items of asynchronous iterables, so other errors may come first.
    if (reference.hasAsyncLists) continue;
    const changed = differs(theirs, guarded.results[index] as Result);
    if (changed !== undefined) return `response ${index + 1} with the guard\n${changed}`;
  }
  return undefined;
}

function differs(theirs: Result, ours: Result): string | undefined {
  if (ours.text !== theirs.text) return `graphql-js: ${theirs.text}\nours:       ${ours.text}`;
  const differing = differentEvent(theirs, ours);
  if (differing !== undefined) return differing;
  // After errors the engines may stop unneeded work at different times.
  if (!theirs.text.startsWith('data')) return undefined;
  if (ours.calls.join('\n') === theirs.calls.join('\n')) return undefined;
  return `graphql-js calls:\n${theirs.calls.join('\n')}\nours:\n${ours.calls.join('\n')}`;
}

/**
 * Resolvers that a failed response no longer needs may run or settle at other times. A response that cannot be written as
 * JSON fails after the events of graphql-js.
 */
function differentEvent(theirs: Result, ours: Result): string | undefined {
  if (theirs.text.startsWith('threw')) return undefined;
  const compared = ({ events }: Result): readonly string[] => {
    if (theirs.text.startsWith('data')) return events;
    const firstWait = events.findIndex((event) => event.startsWith('execute end'));
    return events.filter((event, index) => index < firstWait || !event.startsWith('resolve'));
  };
  const expected = compared(theirs);
  const actual = compared(ours);
  const at = expected.findIndex((event, index) => event !== actual[index]);
  if (at === -1 && expected.length === actual.length) return undefined;
  return `graphql-js event: ${expected[at]}\nours: ${actual[at]}\nof ${expected.length} and ${actual.length}`;
}

/** The schema, query and variables of a case as text. */
export function describeCase(fuzzed: FuzzCase): string {
  const { random, query } = settingOf(fuzzed);
  const variables = JSON.stringify(query.variables);
  return `${printSchema(random.schema)}\n\n${query.text}\n\nvariables ${variables}`;
}
