import {
  type GraphQLOutputType,
  type GraphQLSchema,
  isAbstractType,
  isLeafType,
  isListType,
  isNonNullType,
  isObjectType,
} from 'graphql';
import { hash } from './choices.ts';
import { failure } from './failures.ts';
import { leafValue } from './leaf-values.ts';
import { listOf } from './list-values.ts';

/** The number of fields out of 1000 that behave in each way. */
export interface Profile {
  readonly late: number;
  readonly fails: number;
  readonly nulls: number;
  readonly strange: number;
  /** Long texts and long lists. */
  readonly long: number;
}

/** The actions of resolvers in one execution, and their calls. */
export interface Behaviour {
  readonly schema: GraphQLSchema;
  readonly seed: number;
  readonly profile: Profile;
  readonly calls: string[];
  /** Promises that are not settled yet. */
  open: number;
  /** Whether resolvers have returned an asynchronous iterable. */
  hasAsyncLists?: boolean;
}

export function roll(behaviour: Behaviour, id: string, what: string): number {
  return hash(`${what}:${id}`, behaviour.seed) % 1000;
}

/** A promise that settles after some microtasks. An engine that ignores its rejection causes an unhandled rejection. */
export function after(behaviour: Behaviour, microtasks: number, settle: () => unknown): Promise<unknown> {
  behaviour.open++;
  return (async () => {
    try {
      if (microtasks > 20) await new Promise(setImmediate);
      else for (let i = 0; i < microtasks; i++) await undefined;
      return settle();
    } finally {
      behaviour.open--;
    }
  })();
}

/** Most promises settle soon, some much later, few in another iteration of the event loop. */
const MICROTASKS = [0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 5, 8, 13, 20, 21];

/** The result of a field or an item: a value, a promise, or a failure. */
export function resultOf(behaviour: Behaviour, type: GraphQLOutputType, id: string): unknown {
  const { profile, seed } = behaviour;
  const settle = (): unknown => {
    if (roll(behaviour, id, 'fails') < profile.fails) return failure(id, seed);
    return plainValue(behaviour, type, id);
  };
  if (roll(behaviour, id, 'late') >= profile.late) return settle();
  const kind = hash(`turns:${id}`, seed) % 20;
  return kind > 15 ? thenable(behaviour, settle) : after(behaviour, MICROTASKS[kind] as number, settle);
}

const THEN = 'then';

/** A thenable that is not a promise. Like a query builder it starts when its `then` is called. */
function thenable(behaviour: Behaviour, settle: () => unknown): unknown {
  return {
    [THEN]: (...handlers: Parameters<Promise<unknown>['then']>) =>
      after(behaviour, 1, settle).then(...handlers),
  };
}

function plainValue(behaviour: Behaviour, type: GraphQLOutputType, id: string): unknown {
  const { profile, seed } = behaviour;
  if (isNonNullType(type)) return plainValue(behaviour, type.ofType, id);
  const nulls = roll(behaviour, id, 'null');
  if (nulls < profile.nulls) return nulls % 2 === 0 ? null : undefined;
  const strange = roll(behaviour, id, 'strange') < profile.strange;
  if (isListType(type)) return listValue(behaviour, type.ofType, id, strange);
  if (isObjectType(type) || isAbstractType(type)) return objectValue(behaviour, type, id, strange);
  const long = roll(behaviour, id, 'long') < profile.long;
  return leafValue(type, hash(`leaf:${id}`, seed), { strange, long });
}

/** Deeply nested lists have at most one item, so that trees end; lists of leaves may be long. */
function listValue(behaviour: Behaviour, type: GraphQLOutputType, id: string, strange: boolean): unknown {
  const kind = hash(`list:${id}`, behaviour.seed);
  const inner = isNonNullType(type) ? type.ofType : type;
  const long = isLeafType(inner) && roll(behaviour, id, 'long') < behaviour.profile.long;
  const deep = id.length > 40;
  const count = long ? 50 + (kind % 1500) : kind % (deep ? 2 : 4);
  const items = Array.from(
    { length: count },
    (_, index) => (): unknown => resultOf(behaviour, type, `${id}[${index}]`),
  );
  const list = listOf(items, kind, strange);
  if (typeof list === 'object' && Symbol.asyncIterator in list) behaviour.hasAsyncLists = true;
  return list;
}

function objectValue(behaviour: Behaviour, type: GraphQLOutputType, id: string, strange: boolean): unknown {
  const kind = hash(`object:${id}`, behaviour.seed);
  if (strange && kind % 4 === 0) return kind % 8 === 0 ? 'no object' : 42;
  const possible = isAbstractType(type) ? behaviour.schema.getPossibleTypes(type) : [type];
  const named = possible[kind % possible.length] as { name: string };
  const names = ['Wrong', 'Either', 'String', 'Query'];
  const wrong = strange && kind % 4 === 1;
  const object = source(behaviour, wrong ? (names[kind % 3] as string) : named.name, id);
  if (kind % 17 === 0) return new Proxy(object, {});
  return kind % 19 === 0 ? Object.setPrototypeOf(object, null) : object;
}

/** An object whose properties follow the behaviour; every third is a method. */
export function source(behaviour: Behaviour, typeName: string, id: string): object {
  const type = behaviour.schema.getType(typeName);
  const object: Record<string, unknown> = { __typename: typeName };
  Object.defineProperty(object, '$id', { value: id });
  Object.defineProperty(object, '$type', { value: typeName });
  if (!isObjectType(type)) return object;
  for (const [name, field] of Object.entries(type.getFields())) {
    if (field.resolve !== undefined || field.extensions['resolveMany'] !== undefined) continue;
    const own = `${id}.${name}`;
    const get = (): unknown => resultOf(behaviour, field.type, own);
    if (hash(`method:${own}`, behaviour.seed) % 3 === 0) {
      object[name] = (args: unknown, _context: unknown, info: { fieldName: string }) => {
        behaviour.calls.push(`method ${own} ${JSON.stringify(args)} ${info.fieldName}`);
        return get();
      };
    } else {
      // Messages of graphql-js quote objects and read their enumerable properties; a promise from a getter would be lost.
      Object.defineProperty(object, name, {
        enumerable: behaviour.profile.late === 0,
        configurable: true,
        get,
      });
    }
  }
  return object;
}
