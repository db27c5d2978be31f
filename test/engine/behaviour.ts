import {
  GraphQLError,
  type GraphQLOutputType,
  type GraphQLSchema,
  isAbstractType,
  isEnumType,
  isListType,
  isNonNullType,
  isObjectType,
  versionInfo,
} from 'graphql';
import { hash } from './tape.ts';

/** How often things happen, of 1000. */
export interface Profile {
  readonly late: number;
  readonly fails: number;
  readonly nulls: number;
  readonly strange: number;
}

/** What resolvers do in one execution, and what they were asked. */
export interface Behaviour {
  readonly schema: GraphQLSchema;
  readonly seed: number;
  readonly profile: Profile;
  readonly calls: string[];
}

function roll(behaviour: Behaviour, id: string, what: string): number {
  return hash(`${what}:${id}`, behaviour.seed) % 1000;
}

/** A promise that settles after some turns. Engines may lose interest in it: that is no unhandled rejection. */
function after(turns: number, settle: () => unknown): Promise<unknown> {
  const promise = (async () => {
    for (let i = 0; i < turns; i++) await undefined;
    return settle();
  })();
  promise.catch(() => undefined);
  return promise;
}

/** What a field or an item gives: a value, a promise of one, or a failure. */
export function resultOf(behaviour: Behaviour, type: GraphQLOutputType, id: string): unknown {
  const { profile } = behaviour;
  const settle = (): unknown => {
    if (roll(behaviour, id, 'fails') < profile.fails) return failure(behaviour, id);
    return plainValue(behaviour, type, id);
  };
  if (roll(behaviour, id, 'late') >= profile.late) return settle();
  const turns = hash(`turns:${id}`, behaviour.seed) % 5;
  return turns === 4 ? thenable(settle) : after(turns, settle);
}

const THEN = 'then';

/** A thenable that is no promise. */
function thenable(settle: () => unknown): unknown {
  const promise = after(1, settle);
  return { [THEN]: (...handlers: Parameters<typeof promise.then>) => promise.then(...handlers) };
}

function failure(behaviour: Behaviour, id: string): unknown {
  switch (hash(`failure:${id}`, behaviour.seed) % 8) {
    case 0:
      return new Error(`returned ${id}`);
    case 1:
      throw new GraphQLError(`graphql ${id}`, { extensions: { code: 'E' } });
    case 2:
      throw `text ${id}`;
    case 3:
      throw Object.assign(new Error(`extended ${id}`), { extensions: { from: id } });
    case 4:
      throw new GraphQLError(`placed ${id}`, { path: ['elsewhere', 1] });
    default:
      throw new Error(`thrown ${id}`);
  }
}

function plainValue(behaviour: Behaviour, type: GraphQLOutputType, id: string): unknown {
  const { profile } = behaviour;
  if (isNonNullType(type)) return plainValue(behaviour, type.ofType, id);
  const nulls = roll(behaviour, id, 'null');
  if (nulls < profile.nulls) return nulls % 2 === 0 ? null : undefined;
  const strange = roll(behaviour, id, 'strange') < profile.strange;
  if (isListType(type)) return listValue(behaviour, type.ofType, id, strange);
  if (isObjectType(type) || isAbstractType(type)) return objectValue(behaviour, type, id, strange);
  return leafValue(behaviour, type, id, strange);
}

function listValue(behaviour: Behaviour, type: GraphQLOutputType, id: string, strange: boolean): unknown {
  const kind = hash(`list:${id}`, behaviour.seed);
  if (strange && kind % 3 === 0) return kind % 2 === 0 ? 'no list' : { no: 'list' };
  const count = kind % 4;
  const items = Array.from({ length: count }, (_, index) => (): unknown => {
    const value = resultOf(behaviour, type, `${id}[${index}]`);
    return value;
  });
  const safely = (item: () => unknown): unknown => {
    try {
      return item();
    } catch (error) {
      return error instanceof Error ? error : new Error(String(error));
    }
  };
  if (versionInfo.major >= 17 && kind % 5 === 0) return asyncItems(items);
  if (strange || kind % 11 === 0)
    return new Set(items.map(safely).map((value, index) => value ?? `s${index}`));
  if (kind % 13 === 0) return lazyItems(items);
  return items.map(safely);
}

function* lazyItems(items: readonly (() => unknown)[]): Generator<unknown> {
  for (const item of items) yield item();
}

async function* asyncItems(items: readonly (() => unknown)[]): AsyncGenerator<unknown> {
  for (const item of items) yield item();
}

function objectValue(behaviour: Behaviour, type: GraphQLOutputType, id: string, strange: boolean): unknown {
  const kind = hash(`object:${id}`, behaviour.seed);
  if (strange && kind % 4 === 0) return kind % 8 === 0 ? 'no object' : 42;
  const possible = isAbstractType(type) ? behaviour.schema.getPossibleTypes(type) : [type];
  const named = possible[kind % possible.length] as { name: string };
  return source(behaviour, strange && kind % 4 === 1 ? 'Wrong' : named.name, id);
}

/** An object whose properties come from the behaviour; every third is a method. */
export function source(behaviour: Behaviour, typeName: string, id: string): object {
  const type = behaviour.schema.getType(typeName);
  const object: Record<string, unknown> = { __typename: typeName };
  Object.defineProperty(object, '$id', { value: id });
  Object.defineProperty(object, '$type', { value: typeName });
  if (!isObjectType(type)) return object;
  for (const [name, field] of Object.entries(type.getFields())) {
    if (field.resolve !== undefined) continue;
    const own = `${id}.${name}`;
    const get = (): unknown => resultOf(behaviour, field.type, own);
    if (hash(`method:${own}`, behaviour.seed) % 3 === 0) {
      object[name] = (args: unknown, _context: unknown, info: { fieldName: string }) => {
        behaviour.calls.push(`method ${own} ${JSON.stringify(args)} ${info.fieldName}`);
        return get();
      };
    } else Object.defineProperty(object, name, { enumerable: true, get });
  }
  return object;
}

const TEXTS = [
  '',
  'plain',
  'say "hi"\\',
  'snow ☃',
  'line\nbreak',
  '\ud800',
  'x'.repeat(230),
  `${'y'.repeat(230)}"`,
];

function leafValue(behaviour: Behaviour, type: GraphQLOutputType, id: string, strange: boolean): unknown {
  const kind = hash(`leaf:${id}`, behaviour.seed);
  const name = String(type);
  if (strange)
    return [{}, [], Number.NaN, 'text', 2 ** 40, true, Symbol('s'), 'explode', 'nothing', -0][kind % 10];
  if (isEnumType(type)) return [1, 'g', 'BLUE'][kind % 3];
  if (name === 'Int') return [0, 1, -1, 2147483647, -2147483648, '12', 7.0, true][kind % 8];
  if (name === 'Float') return [0, 1.5, -0, 1e21, 1e-7, '2.5', 3][kind % 7];
  if (name === 'Boolean') return [true, false, 1][kind % 3];
  if (name === 'ID') return ['id', 12, -3][kind % 3];
  if (name === 'Any') return anyValue(kind);
  return kind % 9 === 8 ? kind : TEXTS[kind % TEXTS.length];
}

function anyValue(kind: number): unknown {
  const values = [
    { a: [1, { b: null }], u: undefined },
    'text',
    12.5,
    [1, [2, 'x']],
    Number.POSITIVE_INFINITY,
    { toJSON: (key: string) => ({ key: key.length > 0 }) },
    new Date(0),
    false,
    () => 1,
    { toJSON: () => undefined },
  ];
  return values[kind % values.length];
}

const typeOf = (value: unknown): string | undefined => (value as { $type?: string } | undefined)?.$type;

/** A `resolveType`, now or later, that fails at times. */
export function typeName(now: () => Behaviour, late: boolean) {
  return (value: unknown): never => {
    const behaviour = now();
    const id = (value as { $id?: string }).$id ?? '?';
    const answer = (): unknown => {
      if (roll(behaviour, id, 'resolveType') < behaviour.profile.fails) throw new Error(`no type for ${id}`);
      return typeOf(value);
    };
    return (late ? after(hash(`type:${id}`, behaviour.seed) % 3, answer) : answer()) as never;
  };
}

/** An `isTypeOf`, now or later, that fails at times. */
export function typeCheck(name: string, now: () => Behaviour, late: boolean) {
  return (value: unknown): boolean | Promise<boolean> => {
    const behaviour = now();
    const id = (value as { $id?: string }).$id ?? '?';
    const answer = (): boolean => {
      const chance = roll(behaviour, id, `isTypeOf ${name}`);
      if (chance < behaviour.profile.fails / 2) throw new Error(`${name} does not know ${id}`);
      return typeOf(value) === name && chance >= behaviour.profile.fails;
    };
    return late ? (after(hash(`is:${id}${name}`, behaviour.seed) % 3, answer) as Promise<boolean>) : answer();
  };
}
