import type { PubSubOptions, RedisClient } from '../../types/pubsub.ts';
import { resolveOptions } from '../options/resolve-options.ts';
import { isEither, isFunction, isObject, isString, positive, type Rules, rule } from '../options/rules.ts';
import { PUBSUB_OPTIONS } from '../options/scopes.ts';
import { createErrorLog } from './error-log.ts';

/** The checked options of `createPubSub`. */
export interface PubSubSettings {
  readonly redis: string | RedisClient | undefined;
  readonly prefix: string;
  readonly bufferSize: number;
  readonly bufferBytes: number;
  readonly heartbeat: number;
  readonly commandTimeout: number;
  readonly onGap: () => void;
  readonly onError: (error: Error) => void;
}

type Given = Omit<PubSubSettings, 'onError'> & {
  readonly onError: ((error: Error) => void) | false | undefined;
};

const isRedis = (value: unknown): boolean =>
  isString(value) ? /^rediss?:\/\//.test(value) : isObject(value) && isFunction(value['duplicate']);
const ignore = (): void => undefined;

const RULES: Rules<Given> = {
  redis: rule(undefined, isRedis, 'a redis:// or rediss:// URL, or an ioredis client'),
  prefix: rule('espalier:', isString, 'a string'),
  bufferSize: positive(1024),
  bufferBytes: positive(8 * 1024 * 1024, 'bytes'),
  heartbeat: positive(5000, 'milliseconds'),
  commandTimeout: positive(5000, 'milliseconds'),
  onGap: rule(ignore, isFunction, 'a function'),
  onError: rule<Given['onError']>(
    undefined,
    isEither(isFunction, (value) => value === false),
    'a function, or false',
  ),
};

export function resolvePubSubOptions(options: PubSubOptions | undefined): PubSubSettings {
  const { onError, ...settings } = resolveOptions<Given>(PUBSUB_OPTIONS, options, RULES);
  return { ...settings, onError: onError === false ? ignore : (onError ?? createErrorLog()) };
}
