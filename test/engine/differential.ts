import { defaultFieldResolver, defaultTypeResolver, printSchema } from 'graphql';
import { createErrorFormatter, MASKED } from '../../src/core/errors.ts';
import type { EngineSettings } from '../../src/execution/types.ts';
import { type Behaviour, type Profile, source } from './behaviour.ts';
import { readTape } from './choices.ts';
import { engines, outcomeOf, prepare, settingsOf } from './compare.ts';
import { type RandomQuery, randomQuery } from './random-query.ts';
import { randomWorld, type World } from './random-schema.ts';

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

/** A request as it can be seen from outside: the answer, and what resolvers were asked. */
interface Answer {
  readonly text: string;
  readonly calls: readonly string[];
}

/** The same operation several times, at last twice at the same time. */
export interface Executions {
  readonly answers: readonly Answer[];
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
export async function both(fuzzed: FuzzCase): Promise<{ reference: Executions; ours: Executions }> {
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
): Promise<Executions> {
  const unhandled: unknown[] = [];
  const notice = (reason: unknown): void => void unhandled.push(reason);
  process.on('unhandledRejection', notice);
  const run = prepare(engine, world.schema, query.text, optionsOf(seed));
  const answers: Answer[] = [];
  for (const [index, variableValues] of query.variables.entries()) {
    const behaviour: Behaviour = {
      schema: world.schema,
      seed: seed + index,
      profile: PROFILES[profile] as Profile,
      calls: [],
      open: 0,
    };
    world.use(behaviour);
    const answer = (values: Record<string, unknown>): Promise<string> =>
      outcomeOf(() => run({ rootValue: source(behaviour, query.root, ''), variableValues: values }));
    const text = await answer(variableValues);
    answers.push({ text, calls: [...behaviour.calls] });
    await quiet(behaviour);
    if (index === 0) continue;
    const both = await Promise.all([answer(variableValues), answer(query.variables[0] ?? {})]);
    answers.push(...both.map((overlapping) => ({ text: overlapping, calls: [] })));
    await quiet(behaviour);
  }
  process.off('unhandledRejection', notice);
  return { answers, unhandled };
}

/** Waits for orphans, so that they do not meddle with what comes next. */
async function quiet(behaviour: Behaviour): Promise<void> {
  do await new Promise(setImmediate);
  while (behaviour.open > 0);
}

/** Why a case is no equal answer; undefined when it is one. */
export function difference({
  reference,
  ours,
}: {
  reference: Executions;
  ours: Executions;
}): string | undefined {
  // What graphql-js executes for us leaves as many as graphql-js.
  if (ours.unhandled.length > reference.unhandled.length)
    return `unhandled: ${ours.unhandled.map(String).join()}`;
  for (const [index, theirs] of reference.answers.entries()) {
    const found = differs(theirs, ours.answers[index] as Answer);
    if (found !== undefined) return `answer ${index + 1}\n${found}`;
  }
  return undefined;
}

function differs(theirs: Answer, ours: Answer): string | undefined {
  if (ours.text !== theirs.text) return `graphql-js: ${theirs.text}\nours:       ${ours.text}`;
  // With errors either engine may leave off work for nobody at its own time.
  if (!theirs.text.startsWith('data')) return undefined;
  if (ours.calls.join('\n') === theirs.calls.join('\n')) return undefined;
  return `graphql-js calls:\n${theirs.calls.join('\n')}\nours:\n${ours.calls.join('\n')}`;
}

/** A case in words. */
export function describeCase(fuzzed: FuzzCase): string {
  const { world, query } = settingOf(fuzzed);
  const variables = JSON.stringify(query.variables);
  return `${printSchema(world.schema)}\n\n${query.text}\n\nvariables ${variables}`;
}
