import type { Execution } from './execution.ts';
import { type Fixed, NULL, writeFixed } from './fixed.ts';
import type { Position, ResponsePath } from './plan.ts';
import { DONE, openSlot } from './slots.ts';
import { writeJson } from './writer.ts';

const LATE: Position = { plan: undefined, nullable: true, shape: 'leaf', complete: () => undefined };

/**
 * Writes the values of custom scalars that are objects, bigints and the like as JSON.stringify of the whole answer
 * would: `toJSON` gets its key; what JSON has no text for (a function) takes its key along, or is null in a list.
 */
export function writeStringified(
  ex: Execution,
  output: unknown,
  path: ResponsePath,
  prefix: Fixed | undefined,
): void {
  let text: string | undefined;
  try {
    text = stringify(output, path.key);
  } catch {
    // A bigint, a cycle, a toJSON that throws: the answer as a whole fails, if this value is still part of it then.
    const slot = openSlot(ex, LATE, path);
    slot.state = DONE;
    slot.late = { value: output, text: '' };
    return;
  }
  if (text !== undefined) writeJson(ex, text);
  else if (prefix === undefined) writeFixed(ex, NULL);
  else if (ex.pos - prefix.length >= ex.segment) ex.pos -= prefix.length;
  else ex.omitted = prefix.length;
}

function stringify(output: unknown, key: string | number): string | undefined {
  if (typeof (output as { toJSON?: unknown } | null | undefined)?.toJSON !== 'function')
    return JSON.stringify(output);
  const name = JSON.stringify(String(key));
  const whole = JSON.stringify({ [key]: output });
  return whole === '{}' ? undefined : whole.slice(name.length + 2, -1);
}
