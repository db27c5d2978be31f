import type { ConnectAnswer } from '../../../types/subscriptions.ts';
import { wrongReturnValue } from '../../options/resolve-options.ts';
import { SUBSCRIPTION_OPTIONS } from '../../options/scopes.ts';
import type { Acceptance } from '../protocol/session.ts';

/** The decision of `onConnect`. */
export interface ConnectDecision {
  readonly acceptance: Acceptance;
  /** Milliseconds since 1970 after which the connection is closed. */
  readonly expiresAt: number | undefined;
}

/** @throws TypeError (code `ERR_OPTION`) if `expiresAt` is not a moment. */
export function decisionOf(answer: ConnectAnswer): ConnectDecision {
  if (typeof answer !== 'object' || answer === null) {
    return { acceptance: answer === false ? false : undefined, expiresAt: undefined };
  }
  const { expiresAt: moment, ...payload } = answer;
  const expiresAt = moment === undefined ? undefined : toMilliseconds(moment);
  // A connection that has expired already is refused: it could run operations until the next check.
  if (expiresAt !== undefined && expiresAt <= Date.now()) return { acceptance: false, expiresAt };
  return { acceptance: Object.keys(payload).length === 0 ? undefined : payload, expiresAt };
}

/** A number this small can only be seconds, as in a JWT's `exp`. */
const MAX_SECONDS = 1e11;

function toMilliseconds(moment: Date | number): number {
  const value = Number(moment);
  if (Number.isNaN(value)) {
    const accepted = 'a Date or a number as expiresAt';
    throw wrongReturnValue(SUBSCRIPTION_OPTIONS, 'onConnect', { expiresAt: moment }, accepted);
  }
  return value < MAX_SECONDS ? value * 1000 : value;
}
