import { resolveOptions } from '../options/resolve-options.ts';
import {
  flag,
  isBoolean,
  isEither,
  isListOf,
  isObject,
  isString,
  positive,
  type Rule,
  type Rules,
  rule,
} from '../options/rules.ts';
import { OTEL_OPTIONS } from '../options/scopes.ts';

/** Names that are allowed: none, the first ones, or those of a list. */
export type NameOption = boolean | readonly string[];

interface SpanSettings {
  readonly phases: boolean;
  readonly events: boolean;
  readonly files: boolean;
  readonly uploads: boolean;
  readonly pubsub: boolean;
}

export interface OpenTelemetrySettings {
  readonly enabled: boolean;
  readonly operationNames: NameOption;
  readonly topics: NameOption;
  readonly maxNames: number;
  readonly errorCounts: boolean;
  readonly documents: boolean;
  readonly variables: NameOption;
  readonly spans: SpanSettings;
}

const names: Rule<NameOption> = rule<NameOption>(
  false,
  isEither(isBoolean, isListOf(isString)),
  'a boolean, or a list of names',
);

const rules: Rules<Omit<OpenTelemetrySettings, 'spans'> & { spans: unknown }> = {
  enabled: flag(true),
  operationNames: names,
  topics: names,
  maxNames: positive(100),
  errorCounts: flag(false),
  documents: flag(false),
  variables: names,
  spans: rule<unknown>(undefined, isObject, 'an object of booleans'),
};

const spanRules: Rules<SpanSettings> = {
  phases: flag(false),
  events: flag(true),
  files: flag(true),
  uploads: flag(true),
  pubsub: flag(true),
};

/** Checks the options of `EspalierInstrumentation` and fills in the defaults. */
export function resolveOpenTelemetryOptions(given: unknown): OpenTelemetrySettings {
  const { spans, ...settings } = resolveOptions(OTEL_OPTIONS, given, rules);
  return { ...settings, spans: resolveOptions({ ...OTEL_OPTIONS, within: 'spans' }, spans, spanRules) };
}
