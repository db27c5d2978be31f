// A client for one subscription over graphql-transport-ws:
// https://github.com/enisdenjo/graphql-ws/blob/master/PROTOCOL.md

// Close codes after which reconnecting is useless: bad message, unauthorized, forbidden, wrong subprotocol.
const FATAL = new Set([4400, 4401, 4403, 4406]);

/**
 * Keeps one subscription alive for as long as the page is open.
 * `started` is called after each (re)connection, so that the page can query the events that it missed.
 * `state` is called with 'on', 'off' or 'refused'.
 */
export function follow(query, { event, started, state }) {
  let socket;
  let retry;
  let tries = 0;

  function connect() {
    clearTimeout(retry);
    socket = new WebSocket(new URL('/graphql', location.href.replace(/^http/, 'ws')), 'graphql-transport-ws');
    socket.onopen = () => send({ type: 'connection_init' });
    socket.onmessage = ({ data }) => receive(JSON.parse(data));
    socket.onclose = closed;
  }

  function send(message) {
    socket.send(JSON.stringify(message));
  }

  function receive(message) {
    if (message.type === 'ping') send({ type: 'pong' });
    if (message.type === 'connection_ack') {
      send({ id: '1', type: 'subscribe', payload: { query } });
      tries = 0;
      state('on');
      started();
    }
    if (message.type === 'next' && message.payload.data) event(message.payload.data);
    // The server ended the subscription, perhaps to restart: reconnect and query the missed events.
    if (message.type === 'error' || message.type === 'complete') socket.close(4000);
  }

  function closed({ code }) {
    if (FATAL.has(code)) return state('refused');
    state('off');
    // 0.5 s, 1 s, 2 s … 15 s, plus up to half of it, so that tabs do not all reconnect in the same moment.
    retry = setTimeout(connect, Math.min(15_000, 500 * 2 ** tries++) * (1 + Math.random() / 2));
  }

  addEventListener('online', () => {
    if (socket.readyState === WebSocket.CLOSED) connect();
  });
  connect();
}
