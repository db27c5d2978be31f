import type { IncomingMessage } from 'node:http';
import { type OptionScope, resolveOptions } from '../options/resolve-options.ts';
import { delay, flag, optionalFunction, positive, type Rules } from '../options/rules.ts';

/** The options of event streams after checks, with defaults filled in. */
export interface EventStreamSettings {
  /** Whether clients may use one event stream for several operations. */
  readonly single: boolean;
  /** Milliseconds between messages that keep a stream open; 0: none. */
  readonly ping: number;
  /** Reservations of one client address that wait for their stream. */
  readonly maxReservations: number;
  /** Returns the user of a request; a reservation can be used by its user only. */
  readonly user: ((req: IncomingMessage) => unknown) | undefined;
}

const rules: Rules<EventStreamSettings> = {
  single: flag(true),
  ping: delay(12_000, 0),
  maxReservations: positive(100),
  user: optionalFunction(),
};

/** Checks the option `eventStreams` and fills in the defaults; undefined if event streams are off. */
export function resolveEventStreams(scope: OptionScope, given: unknown): EventStreamSettings | undefined {
  if (given === false) return undefined;
  return resolveOptions({ ...scope, within: 'eventStreams' }, given, rules);
}
