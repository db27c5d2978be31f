// One subscription that stays alive for as long as the page is open, over the client of graphql-ws.
import { resumable } from './modules/espalier-client.mjs';
import { createClient } from './modules/graphql-ws/client.js';

const MAX_WAIT = 15_000;

/**
 * Keeps one subscription alive. After a lost connection it continues with the event after the last one.
 * `refetch` is called when the page has to query the current state: at the start, and when the server has not stored
 * the missed events.
 * `state` is called with 'on', 'off' or 'refused'.
 */
export function follow(query, { event, refetch, state = () => {}, variables }) {
  const client = createClient({
    url: new URL('/graphql', location.href.replace(/^http/, 'ws')).href,
    retryAttempts: Number.POSITIVE_INFINITY,
    shouldRetry: () => true,
    retryWait,
    on: { connected: () => state('on'), closed: () => state('off') },
  });

  function subscribe() {
    resumable(client, { refetch }).subscribe(
      { query, variables },
      {
        next: ({ data }) => data && event(data),
        // Errors of the operation are a list. Any other error means that the server refuses the connection.
        error: (error) => (Array.isArray(error) ? subscribeLater() : state('refused')),
        complete: subscribeLater,
      },
    );
  }

  function subscribeLater() {
    state('off');
    setTimeout(subscribe, MAX_WAIT * Math.random());
  }

  subscribe();
}

/** 0.5 s, 1 s, 2 s … 15 s, plus up to half of it, so that tabs do not all reconnect in the same moment. */
function retryWait(tries) {
  const time = Math.min(MAX_WAIT, 500 * 2 ** tries) * (1 + Math.random() / 2);
  return new Promise((resolve) => {
    setTimeout(resolve, time);
    addEventListener('online', resolve, { once: true });
  });
}
