/**
 * Ends a stream early. With close code 1013, "try again later", clients reconnect and query the events that
 * they missed.
 */
export function missedEvents(reason: string): Error {
  return Object.assign(new Error(`Events may have been missed: ${reason}.`), {
    code: 'ERR_EVENTS_MISSED',
    closeCode: 1013,
  });
}
