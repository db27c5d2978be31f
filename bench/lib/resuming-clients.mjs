// Clients of graphql-ws and graphql-sse with resumable(), which record what they have seen.
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { createClient as createStreamClient } from 'graphql-sse';
import { createClient as createSocketClient } from 'graphql-ws';
import { WebSocket } from 'ws';

const DEADLINE = 60_000;
const retry = () => sleep(20 + Math.random() * 200);

/** Creates clients: most over WebSockets, every fifth over event streams; half of them with a private subscription. */
export async function createResumingClients({ resumable }, count, ports) {
  const sockets = new Set();
  let connections = 0;

  /** A WebSocket that can be killed without a close frame, like a client that loses its network. */
  class KillableSocket extends WebSocket {
    constructor(...args) {
      super(...args);
      connections++;
      sockets.add(this);
      this.on('close', () => sockets.delete(this));
    }
  }

  function connect(index, port) {
    if (index % 5 === 0) {
      const url = `http://127.0.0.1:${port}/graphql`;
      return createStreamClient({ url, retryAttempts: Number.POSITIVE_INFINITY, retry });
    }
    return createSocketClient({
      url: `ws://127.0.0.1:${port}/graphql`,
      webSocketImpl: KillableSocket,
      retryAttempts: Number.POSITIVE_INFINITY,
      shouldRetry: () => true,
      retryWait: retry,
    });
  }

  function start(index) {
    const state = { segments: [], starts: 0, last: undefined, failure: undefined };
    const connection = connect(index, ports[index % ports.length]);
    const client = resumable(connection, {
      maxDelay: 200,
      refetch() {
        state.starts++;
        state.segments.push([]);
      },
    });
    const query = 'subscription ($private: Boolean) { tick(private: $private) }';
    client.subscribe(
      { query, variables: { private: index % 2 === 0 } },
      {
        next({ data, errors }) {
          if (errors !== undefined) state.failure = errors;
          state.last = data?.tick;
          state.segments.at(-1).push(data?.tick);
        },
        error: (error) => {
          state.failure = error;
        },
        complete: () => {
          state.failure ??= 'complete';
        },
      },
    );
    state.dispose = () => connection.dispose();
    return state;
  }

  const states = Array.from({ length: count }, (_, index) => start(index));
  return {
    /** The number of times that Redis has lost its data. */
    losses: 0,
    /** The number of times that a replica that may lack events has taken over. */
    hardFailOvers: 0,
    received: () => states.reduce((sum, { segments }) => sum + segments.flat().length, 0),
    connections: () => connections,
    /** Kills every third WebSocket. */
    kill() {
      let index = 0;
      for (const socket of sockets) if (index++ % 3 === 0) socket._socket?.resetAndDestroy();
    },
    /** Resolves when the condition is true for every client. */
    async until(holds, where = 'the start') {
      const end = Date.now() + DEADLINE;
      for (;;) {
        const late = states.filter((state) => !holds(state));
        if (late.length === 0) return;
        const [first] = late;
        if (first.failure !== undefined)
          throw new Error(`a client has failed: ${JSON.stringify(first.failure)}`);
        if (Date.now() > end) {
          const { starts, last, segments } = first;
          const index = states.indexOf(first);
          throw new Error(
            `${late.length} clients are late after ${where}; client ${index}: ${JSON.stringify({ starts, last, segments: segments.map((s) => s.slice(-5)) })}`,
          );
        }
        await sleep(20);
      }
    },
    /**
     * Checks that each client has seen consecutive stored events, and as many starts as losses allow. An event that is not
     * stored was lost by a failover.
     */
    check(truth) {
      const places = new Map(truth.map((n, place) => [n, place]));
      for (const [index, { segments, starts }] of states.entries()) {
        const least = this.losses + 1;
        assert.ok(
          starts >= least && starts <= least + this.hardFailOvers,
          `client ${index} has ${starts} starts, not ${least}`,
        );
        for (const segment of segments) {
          const isLost = (n) => this.hardFailOvers > 0 && !places.has(n);
          const seen = segment.filter((n) => !isLost(n)).map((n) => places.get(n));
          const [first = 0] = seen;
          assert.deepEqual(
            seen,
            Array.from(seen, (_, i) => first + i),
            `client ${index} has a gap or a duplicate: ${segment}`,
          );
          assert.equal(new Set(segment).size, segment.length, `client ${index} has a duplicate: ${segment}`);
        }
      }
    },
    async stop() {
      await Promise.all(states.map(({ dispose }) => dispose()));
    },
  };
}
