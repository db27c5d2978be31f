import type { PubSubOptions, RedisClient } from '../../types/pubsub.ts';
import { createErrorListener, guardListener } from '../logging/warning-log.ts';
import { resolveOptions } from '../options/resolve-options.ts';
import {
  delay,
  isEither,
  isFunction,
  isObject,
  isString,
  positive,
  type Rules,
  rule,
} from '../options/rules.ts';
import { HISTORY_OPTIONS, PUBSUB_OPTIONS } from '../options/scopes.ts';
import { redisRule } from '../redis/connect.ts';
import type { HistoryLimits } from './history/store.ts';

/** The checked options of `createPubSub`. */
export interface PubSubSettings {
  readonly redis: string | RedisClient | undefined;
  readonly prefix: string;
  readonly bufferSize: number;
  readonly bufferBytes: number;
  readonly heartbeat: number;
  readonly commandTimeout: number;
  readonly history: HistoryLimits | undefined;
  readonly onGap: () => void;
  readonly onError: (error: Error) => void;
}

type Given = Omit<PubSubSettings, 'onError' | 'history'> & {
  readonly history: unknown;
  readonly onError: ((error: Error) => void) | false | undefined;
};

const WARNINGS = { owner: 'createPubSub', type: 'PubSubWarning', code: 'ESPALIER_PUBSUB' };
const ignore = (): void => undefined;

const RULES: Rules<Given> = {
  redis: redisRule,
  prefix: rule('espalier:', isString, 'a string'),
  bufferSize: positive(1024),
  bufferBytes: positive(8 * 1024 * 1024, 'bytes'),
  heartbeat: delay(5000),
  commandTimeout: delay(5000),
  history: rule<unknown>(undefined, isObject, 'an object such as { length: 1000, age: 300_000 }'),
  onGap: rule(ignore, isFunction, 'a function'),
  onError: rule<Given['onError']>(
    undefined,
    isEither(isFunction, (value) => value === false),
    'a function, or false',
  ),
};

const REDIS = "use redis: a URL such as 'redis://localhost:6379', or an ioredis client";

/** Replacements for options of ioredis, graphql-redis-subscriptions and Yoga's pub/sub, for error messages. */
const REPLACED_OPTIONS: Readonly<Record<string, string>> = {
  host: REDIS,
  port: REDIS,
  url: REDIS,
  client: REDIS,
  connection: REDIS,
  publisher: REDIS,
  subscriber: REDIS,
  eventTarget: REDIS,
};

const HISTORY_RULES: Rules<HistoryLimits> = {
  length: positive(1000),
  age: positive(300_000, 'milliseconds'),
};

export function resolvePubSubOptions(options: PubSubOptions | undefined): PubSubSettings {
  const resolved = resolveOptions<Given>(PUBSUB_OPTIONS, options, RULES, REPLACED_OPTIONS);
  const { history, ...settings } = resolved;
  const onError = createErrorListener(resolved.onError, WARNINGS);
  return {
    ...settings,
    history:
      history === undefined
        ? undefined
        : resolveOptions<HistoryLimits>(HISTORY_OPTIONS, history, HISTORY_RULES),
    onGap: guardListener('onGap', resolved.onGap, onError),
    onError,
  };
}
