import { types } from 'node:util';
import type { ConnectResult } from '../../../types/subscriptions.ts';
import { wrongReturnValue } from '../../options/resolve-options.ts';
import { SUBSCRIPTION_OPTIONS } from '../../options/scopes.ts';
import type { Acceptance } from '../protocol/session-connection.ts';

/** The decision of `onConnect`. */
interface ConnectDecision {
  readonly acceptance: Acceptance;
  /** Milliseconds since 1970 after which the connection is closed. */
  readonly expiresAt: number | undefined;
}

/** @throws TypeError (code `ERR_OPTION`) if `expiresAt` is not a valid time. */
export function decisionOf(returned: ConnectResult): ConnectDecision {
  if (typeof returned !== 'object' || returned === null) {
    return { acceptance: returned === false ? false : undefined, expiresAt: undefined };
  }
  const { expiresAt: time, ...payload } = returned;
  const expiresAt = time === undefined ? undefined : toMilliseconds(time);
  // Refuses a connection that has expired already: it could run operations until the next check.
  if (expiresAt !== undefined && expiresAt <= Date.now()) return { acceptance: false, expiresAt };
  return { acceptance: Object.keys(payload).length === 0 ? undefined : payload, expiresAt };
}

/** Smaller numbers are seconds, as in a JWT's `exp`. */
const MAX_SECONDS = 1e11;

function toMilliseconds(time: Date | number): number {
  const value = typeof time === 'number' || types.isDate(time) ? Number(time) : Number.NaN;
  if (Number.isNaN(value)) {
    const accepted = 'a Date or a number as expiresAt';
    throw wrongReturnValue(SUBSCRIPTION_OPTIONS, 'onConnect', { expiresAt: time }, accepted);
  }
  return value < MAX_SECONDS ? value * 1000 : value;
}
