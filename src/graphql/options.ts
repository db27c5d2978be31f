import { GraphQLScalarType, GraphQLSchema, isScalarType } from 'graphql';
import type { GraphiQLOption } from '../../types/graphiql.ts';
import type { DocumentLimits, GraphQLLimits, GraphQLOptions, MethodName } from '../../types/graphql.ts';
import { Compression } from '../compress/results.ts';
import {
  type CoreSettings,
  type DocumentLimitSettings,
  MAX_VARIABLES,
  resolveCoreOptions,
} from '../core/options.ts';
import { noteProductionDefaults } from '../diagnostics/logging.ts';
import { resolveCursors } from '../live/cursors.ts';
import {
  bytes,
  duration,
  flag,
  group,
  isEither,
  isOneOf,
  oneOf,
  oneOrMore,
  optionError,
  type Rules,
  rule,
  type WithDefaults,
} from '../options/rules.ts';
import { GRAPHQL_OPTIONS, UPLOAD_OPTIONS } from '../options/scopes.ts';
import { isBoolean, isFunction, isObject, isPositive } from '../options/values.ts';

type OwnLimits = Readonly<WithDefaults<Omit<GraphQLLimits, keyof DocumentLimits>>>;

interface OwnSettings {
  readonly methods: readonly MethodName[];
  readonly getMutations: 'guarded' | boolean;
  readonly multipartUploadsEnabled: boolean;
  readonly uploads: unknown;
  readonly graphiql: GraphiQLOption;
  readonly batching: boolean | number;
  readonly statusCodes: NonNullable<GraphQLOptions['statusCodes']>;
  /** Undefined: on, unless `attachSubscriptions` has `onConnect`. */
  readonly eventStreams: boolean | undefined;
  readonly httpCache: unknown;
  readonly responseCache: unknown;
  readonly compress: boolean | 'all';
  readonly usage: unknown;
  readonly idempotency: unknown;
  readonly clientLimits: unknown;
}

/** The options of `graphqlHTTP` after checks, with defaults filled in. */
export type HttpSettings = Omit<CoreSettings, 'limits'> &
  Omit<OwnSettings, 'compress'> & {
    readonly limits: DocumentLimitSettings & OwnLimits;
    /** Undefined if responses are not compressed. */
    readonly compression: Compression | undefined;
    /** Whether a function of the options may get the request. */
    readonly hasFunctions: boolean;
  };

const MIB = 1024 * 1024;

const limits: Rules<OwnLimits> = {
  bodyBytes: bytes(MIB, { to: Number.POSITIVE_INFINITY }),
  bodyTimeout: duration(30_000, { to: Number.POSITIVE_INFINITY }),
};

const isMethod = isOneOf('GET', 'POST', 'HEAD', 'QUERY');
const isSwitch = isEither(isBoolean, isFunction);

const rules: Rules<OwnSettings> = {
  methods: rule<readonly MethodName[]>(
    ['GET', 'POST', 'HEAD', 'QUERY'],
    oneOrMore(isMethod),
    'a list of Method.GET, Method.POST, Method.HEAD and Method.QUERY',
  ),
  getMutations: oneOf('guarded', true, false),
  multipartUploadsEnabled: flag(true),
  uploads: group('an object of upload limits, or false for no uploads', isOneOf(false)),
  graphiql: rule<GraphiQLOption>(
    true,
    isEither(isSwitch, isObject),
    'a boolean, an object of options, or a function of the request',
  ),
  batching: rule<boolean | number>(
    false,
    isEither(isBoolean, isPositive),
    'a boolean, or the most operations of a list: a whole number from 1',
  ),
  statusCodes: rule<OwnSettings['statusCodes']>(
    'legacy',
    isEither(isOneOf('legacy', 'spec', 'apollo'), isFunction),
    "'legacy', 'spec', 'apollo', or a function of the response",
  ),
  eventStreams: rule<boolean | undefined>(undefined, isBoolean, 'a boolean'),
  httpCache: group('a boolean, or an object of options', isBoolean),
  responseCache: group('a boolean, or an object of options', isBoolean),
  compress: rule<boolean | 'all'>(false, isOneOf(false, true, 'all'), "a boolean, or 'all'"),
  usage: group("a boolean, or an object such as { file: 'usage.json' }", isBoolean),
  clientLimits: group('a boolean, or an object such as { connections: 20 }', isBoolean),
  idempotency: group(
    'a boolean with the option "caller", or an object such as { user: (req) => req.auth.sub, required: [\'pay\'] }',
    isBoolean,
  ),
};

/** Checks the options of `graphqlHTTP` and fills in the defaults. */
export function resolveHttpOptions(given: unknown): HttpSettings {
  const settings = resolveCoreOptions(GRAPHQL_OPTIONS, given, {
    rules,
    limits,
  });
  const options = (given ?? {}) as Readonly<Record<string, unknown>>;
  if (process.env['NODE_ENV'] === 'production') {
    noteProductionDefaults(
      'https://github.com/espalier-js/espalier/blob/main/docs/security.md#production-checklist',
      ['graphiql', 'introspection', 'getMutations'].filter((name) => options[name] === undefined),
    );
  }
  const { uploads } = settings;
  return {
    ...settings,
    multipartUploadsEnabled: settings.multipartUploadsEnabled && uploads !== false,
    uploads: uploads === false ? undefined : uploads,
    maxVariables: Math.round(Math.max(1, settings.limits.bodyBytes / MIB) * MAX_VARIABLES),
    cursorSettings: resolveCursors(settings.cursors),
    compression: settings.compress ? new Compression(settings.compress) : undefined,
    hasFunctions: hasFunctions(options),
  };
}

/** Whether an option, or a member of a group of options, is a function. */
function hasFunctions({ context, rootValue, ...others }: Readonly<Record<string, unknown>>): boolean {
  const values = Object.values(others);
  const members = values.filter(isObject).flatMap((group) => Object.values(group));
  return [context, rootValue, ...values, ...members].some(isFunction);
}

/** The default `parseValue` of graphql, for scalars without their own function. */
const { parseValue: acceptsAnyValue } = new GraphQLScalarType({ name: 'Any' });

/**
 * The message of graphql-upload's scalar for all values but its own. Its functions have no other mark, and several
 * versions of it may be installed.
 */
const GRAPHQL_UPLOAD = 'Upload value invalid';

/**
 * Refuses a schema whose scalar `Upload` accepts any JSON value, as `scalar Upload` in SDL does without a
 * resolver: clients could send `{"filename":"x"}` in place of a file. The scalar of graphql-upload refuses every file.
 *
 * @throws TypeError (code `ERR_OPTION`).
 */
export function assertUploadScalar(schema: unknown): void {
  const type = schema instanceof GraphQLSchema ? schema.getType('Upload') : undefined;
  if (!isScalarType(type)) return;
  if (type.parseValue === acceptsAnyValue) throw wrongScalar('accepts any JSON value');
  if (String(type.parseValue).includes(GRAPHQL_UPLOAD)) {
    throw wrongScalar('is that of graphql-upload, which refuses the files that graphqlHTTP receives');
  }
}

const wrongScalar = (problem: string): TypeError =>
  optionError(
    { name: 'graphqlHTTP', page: UPLOAD_OPTIONS.page },
    `the scalar "Upload" of the schema ${problem}; pass the scalar Upload of espalier as its resolver (makeExecutableSchema({ typeDefs, resolvers: { Upload } })), or set multipartUploadsEnabled: false`,
  );
