import { accessSync, constants, statSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { RedisSource } from '../../types/redis.ts';
import { isClient, type OperationFunction } from '../core/caller.ts';
import type { Extension } from '../core/extension.ts';
import { createWarningLog } from '../diagnostics/logging.ts';
import {
  assertSync,
  formatValue,
  isPathOrUrl,
  optionalFunction,
  optionError,
  type Rules,
  resolveOptions,
  rule,
  wrongReturnValue,
} from '../options/rules.ts';
import { USAGE_OPTIONS } from '../options/scopes.ts';
import { isString } from '../options/values.ts';
import { redisRule } from '../redis/clients.ts';
import { commandsOf } from '../redis/commands.ts';
import { toClient, UsageRecorder } from './recorder.ts';
import { createFileTarget, createMemoryTarget, createRedisTarget, type UsageTarget } from './report.ts';

interface UsageSettings {
  readonly file: string | URL | undefined;
  readonly redis: RedisSource | undefined;
  readonly client: OperationFunction | undefined;
}

const rules: Rules<UsageSettings> = {
  file: rule<UsageSettings['file']>(undefined, isPathOrUrl, 'the path of a file, or a file: URL'),
  redis: redisRule,
  client: optionalFunction(),
};

const WARNINGS = { owner: 'graphqlHTTP', type: 'UsageWarning', code: 'ESPALIER_USAGE' };

/**
 * Creates the extension of the option `usage`, which counts the operations that the others admit.
 *
 * @throws TypeError (code `ERR_OPTION`).
 */
export function createUsage(given: unknown): Extension {
  const settings = resolveOptions(USAGE_OPTIONS, given === true ? {} : given, rules);
  const { client: clientOf } = settings;
  const warn = createWarningLog(WARNINGS);
  const recorder = new UsageRecorder({
    target: targetOf(settings),
    report: (error) => warn(new Error(`the usage was not written, and is written later: ${error.message}`)),
  });
  return {
    readsSource: true,
    handler: { usage: recorder },
    onSocket: (websocket, connectionParams) => recorder.open(websocket, connectionParams),
    prepare: (prepared) => ({
      admit({ variableValues, source, contextValue, observed, caller }) {
        const named: unknown = clientOf === undefined ? caller?.client : clientOf(source, contextValue);
        assertSync(named, USAGE_OPTIONS, 'client');
        if (!isClient(named))
          throw wrongReturnValue(USAGE_OPTIONS, 'client', named, 'a name, { name, version } or undefined');
        const known = named === undefined ? undefined : toClient(named);
        const client = recorder.count(prepared, variableValues, source, known);
        if (observed !== undefined) observed.client = client;
        return undefined;
      },
    }),
  };
}

function targetOf({ file, redis }: UsageSettings): UsageTarget {
  if (file !== undefined && redis !== undefined)
    throw optionError(USAGE_OPTIONS, 'options "usage.file" and "usage.redis" are both set; keep one');
  if (file !== undefined) return createFileTarget(checkFile(file));
  return redis === undefined ? createMemoryTarget() : createRedisTarget(commandsOf(redis));
}

/** Returns the path of a file that can be written: the first interval is too late to notice. */
function checkFile(file: string | URL): string {
  const path = isString(file) ? resolve(file) : fileURLToPath(file);
  const folder = dirname(path);
  let problem = 'which is a directory; pass the path of a file, such as usage.json in it';
  try {
    // With a slash, which is an error for a file.
    accessSync(`${folder}/`, constants.W_OK | constants.X_OK);
    if (statSync(path, { throwIfNoEntry: false })?.isDirectory() !== true) return path;
  } catch (error) {
    problem = `which cannot be written; create the directory ${formatValue(folder)}, writable for this process, before the call: ${(error as Error).message}`;
  }
  throw optionError(USAGE_OPTIONS, `option "usage.file" is ${formatValue(path)}, ${problem}`);
}
