/**
 * Creates the error of a stream that ends because events may be missing. With close code 1013, "try again
 * later", clients reconnect and query the events that they missed.
 */
export function mayHaveMissedEvents(reason: string): Error {
  return Object.assign(new Error(`Events may have been missed: ${reason}.`), {
    code: 'ERR_EVENTS_MISSED',
    closeCode: 1013,
  });
}

/**
 * Ends a stream whose events are not all in the history. It has the form of a GraphQLError, so that clients
 * see it without a dependency of the pubsub on graphql.
 */
class EventsNotStoredError extends Error {
  override readonly name = 'GraphQLError';
  readonly code = 'ERR_EVENTS_MISSED';
  readonly extensions = { code: 'EVENTS_MISSED', refetch: true };

  toJSON(): object {
    return { message: this.message, extensions: this.extensions };
  }
}

/** Creates the error for a cursor that is too old or unknown. */
export function eventsNotStored(): Error {
  return new EventsNotStoredError(
    'Events were missed that are no longer stored. Query the current state again.',
  );
}
