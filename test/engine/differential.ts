import { defaultFieldResolver, defaultTypeResolver, printSchema } from 'graphql';
import type { EngineSettings } from '../../src/graphql/contract.ts';
import { createErrorFormatter, MASKED } from '../../src/graphql/errors.ts';
import { type Behaviour, type Profile, source } from './behaviour.ts';
import { engines, outcomeOf, prepare, settingsOf } from './compare.ts';
import { type RandomQuery, randomQuery } from './query.ts';
import { readTape } from './tape.ts';
import { randomWorld, type World } from './world.ts';

export const PROFILES: Readonly<Record<string, Profile>> = {
  'calm and synchronous': { late: 0, fails: 0, nulls: 20, strange: 0, long: 40 },
  'failing and synchronous': { late: 0, fails: 90, nulls: 80, strange: 60, long: 10 },
  'calm and promised': { late: 400, fails: 0, nulls: 20, strange: 0, long: 40 },
  'failing and promised': { late: 400, fails: 90, nulls: 60, strange: 40, long: 10 },
  'promised everywhere, failing often': { late: 850, fails: 160, nulls: 60, strange: 30, long: 10 },
  'few failures': { late: 300, fails: 12, nulls: 10, strange: 8, long: 20 },
};

/** What makes a case: the bytes that schema and query are read from, and the seed of what resolvers do. */
export interface FuzzCase {
  readonly bytes: Uint8Array;
  readonly seed: number;
  readonly profile: string;
}

/** An execution as it can be seen from outside: the answer, and what resolvers were asked. */
export interface Execution {
  readonly text: string;
  readonly calls: readonly string[];
  /** Rejections that nobody handled; graphql-js leaves some. */
  readonly unhandled: readonly unknown[];
}

interface Setting {
  readonly world: World;
  readonly query: RandomQuery;
}

function settingOf({ bytes }: FuzzCase): Setting {
  const tape = readTape(bytes);
  const world = randomWorld(tape);
  return { world, query: randomQuery(tape, world.schema) };
}

/** Executes one case under graphql-js and under the compiled engine, each with resolvers of its own. */
export async function both(fuzzed: FuzzCase): Promise<{ reference: Execution; ours: Execution }> {
  const setting = settingOf(fuzzed);
  const reference = await execute(engines.graphqlJs, setting, fuzzed);
  const ours = await execute(engines.compiled, setting, fuzzed);
  return { reference, ours };
}

/** Half of the cases are masked as they are for clients, and some have resolvers of their own for all fields and types. */
function optionsOf(seed: number): EngineSettings {
  const masking = { maskedMessage: MASKED, formatErrors: createErrorFormatter({ formatError: undefined }) };
  const resolving = {
    fieldResolver: (...all: Parameters<typeof defaultFieldResolver>) => defaultFieldResolver(...all),
    typeResolver: (...all: Parameters<typeof defaultTypeResolver>) => defaultTypeResolver(...all),
  };
  return settingsOf({ ...(seed % 2 === 1 ? masking : {}), ...(seed % 7 === 0 ? resolving : {}) });
}

async function execute(
  engine: (typeof engines)['compiled'],
  { world, query }: Setting,
  { seed, profile }: FuzzCase,
): Promise<Execution> {
  const behaviour: Behaviour = {
    schema: world.schema,
    seed,
    profile: PROFILES[profile] as Profile,
    calls: [],
    open: 0,
  };
  world.use(behaviour);
  const unhandled: unknown[] = [];
  const notice = (reason: unknown): void => void unhandled.push(reason);
  process.on('unhandledRejection', notice);
  const run = prepare(engine, world.schema, query.text, optionsOf(seed));
  const rootValue = source(behaviour, query.root, '');
  const text = await outcomeOf(() => run({ rootValue, variableValues: query.variables }));
  const calls = [...behaviour.calls];
  // Orphans finish before the next engine begins.
  do await new Promise(setImmediate);
  while (behaviour.open > 0);
  process.off('unhandledRejection', notice);
  return { text, calls, unhandled };
}

/** Why a case is no equal answer; undefined when it is one. */
export function difference({
  reference,
  ours,
}: {
  reference: Execution;
  ours: Execution;
}): string | undefined {
  // What graphql-js executes for us leaves as many as graphql-js.
  if (ours.unhandled.length > reference.unhandled.length)
    return `unhandled: ${ours.unhandled.map(String).join()}`;
  if (ours.text !== reference.text) return `graphql-js: ${reference.text}\nours:       ${ours.text}`;
  // With errors either engine may leave off work for nobody at its own time.
  if (!reference.text.startsWith('data')) return undefined;
  if (ours.calls.join('\n') === reference.calls.join('\n')) return undefined;
  return `graphql-js calls:\n${reference.calls.join('\n')}\nours:\n${ours.calls.join('\n')}`;
}

/** A case in words. */
export function describeCase(fuzzed: FuzzCase): string {
  const { world, query } = settingOf(fuzzed);
  const variables = JSON.stringify(query.variables);
  return `${printSchema(world.schema)}\n\n${query.text}\n\nvariables ${variables}`;
}
