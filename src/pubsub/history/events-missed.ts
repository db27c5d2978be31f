/**
 * Ends a stream whose events are not all in the history. It has the form of a GraphQLError, so that clients
 * see it without a dependency of the pubsub on graphql.
 */
class EventsMissedError extends Error {
  override readonly name = 'GraphQLError';
  readonly code = 'ERR_EVENTS_MISSED';
  readonly extensions = { code: 'EVENTS_MISSED', refetch: true };

  toJSON(): object {
    return { message: this.message, extensions: this.extensions };
  }
}

/** Creates the error for a cursor that is too old or unknown. */
export function eventsMissed(): Error {
  return new EventsMissedError(
    'Events were missed that are no longer stored. Query the current state again.',
  );
}
