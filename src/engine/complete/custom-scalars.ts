import type { ResponsePath } from 'graphql';
import { writeJson } from '../json/sink.ts';
import { NULL, type StaticText, writeStatic } from '../json/static-text.ts';
import { DONE, type Execution } from '../run/execution.ts';
import type { ErrorPosition } from '../run/field-error.ts';
import { openPending } from '../run/pending.ts';

const DEFERRED: ErrorPosition = { field: undefined, nullable: true, shape: 'leaf' };

/**
 * Writes an object, bigint or other value of a custom scalar as JSON.stringify of the whole response would: `toJSON`
 * receives the key. A value without JSON (a function) is removed with its key; in a list it becomes null.
 */
export function writeCustomValue(
  ex: Execution,
  output: unknown,
  path: ResponsePath,
  keyText: StaticText | undefined,
): void {
  let json: string | undefined;
  try {
    json = stringify(output, path.key);
  } catch {
    // A bigint, a cycle, or a `toJSON` that throws. The response fails unless an error removes this value from it.
    const pending = openPending(ex, DEFERRED, path);
    pending.state = DONE;
    pending.deferredJson = { value: output, json: '' };
    return;
  }
  if (json !== undefined) writeJson(ex, json);
  else if (keyText === undefined) writeStatic(ex, NULL);
  else if (ex.pos - keyText.length >= ex.segment) ex.pos -= keyText.length;
  else ex.omittedKeyLength = keyText.length;
}

function stringify(output: unknown, key: string | number): string | undefined {
  if (typeof (output as { toJSON?: unknown } | null | undefined)?.toJSON !== 'function')
    return JSON.stringify(output);
  const name = JSON.stringify(String(key));
  const json = JSON.stringify({ [key]: output });
  return json === '{}' ? undefined : json.slice(name.length + 2, -1);
}
