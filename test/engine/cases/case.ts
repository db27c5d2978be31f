import {
  buildSchema,
  type GraphQLFieldResolver,
  type GraphQLNamedType,
  type GraphQLSchema,
  isObjectType,
  versionInfo,
} from 'graphql';
import type { EngineSettings } from '../../../src/execution/types.ts';

export const V17: boolean = versionInfo.major >= 17;

/** A request and the response of graphql-js. */
export interface Case {
  readonly title: string;
  readonly query: string;
  readonly variables?: Record<string, unknown>;
  /** The root value; a function makes a new one for each execution. */
  readonly root?: unknown;
  readonly context?: unknown;
  readonly operationName?: string;
  readonly settings?: Partial<EngineSettings>;
  /** Missing if the response has no `data`, because the request was refused. */
  readonly data?: unknown;
  /** Message, path and locations (line:column) of each error, in order. */
  readonly errors?: readonly string[];
}

/** Selects the messages of graphql 16 or 17. */
export const on = <T>(of16: T, of17: T): T => (V17 ? of17 : of16);

/** Cases of one topic, with their schema. */
export interface Group {
  readonly title: string;
  readonly schema: GraphQLSchema;
  readonly cases: readonly Case[];
}

type Resolvers = Readonly<Record<string, GraphQLFieldResolver<never, never>>>;
/** Functions of a type, which the schema language cannot express. */
type Functions = Readonly<Record<string, (...args: never[]) => unknown>>;

/** A schema with resolvers by `Type.field`, and functions by type (`serialize` is `coerceOutputValue` from 17 on). */
export function schemaOf(
  sdl: string,
  resolvers: Resolvers = {},
  functions: Readonly<Record<string, Functions>> = {},
): GraphQLSchema {
  const schema = buildSchema(sdl);
  for (const [place, resolve] of Object.entries(resolvers)) {
    const [typeName, field] = place.split('.') as [string, string];
    const type = schema.getType(typeName);
    if (isObjectType(type)) Object.assign(type.getFields()[field] ?? {}, { resolve });
  }
  for (const [name, own] of Object.entries(functions)) assign(schema.getType(name), own);
  return schema;
}

const NAMES_OF_17: Readonly<Record<string, string>> = {
  serialize: 'coerceOutputValue',
  parseValue: 'coerceInputValue',
};

function assign(type: GraphQLNamedType | undefined, own: Functions): void {
  for (const [name, fn] of Object.entries(own)) {
    Object.assign(type ?? {}, { [V17 ? (NAMES_OF_17[name] ?? name) : name]: fn });
  }
}

export const fails = (text: string) => (): never => {
  throw new Error(text);
};
export const later = <T>(value: T): Promise<T> => Promise.resolve(value);
export const rejects = (text: string) => (): Promise<never> => Promise.reject(new Error(text));
/** Returns the arguments as JSON. */
export const echo = (_source: unknown, args: unknown): string => JSON.stringify(args);
