// A subscription over graphql-transport-ws, spoken directly: https://github.com/enisdenjo/graphql-ws/blob/master/PROTOCOL.md

// Close codes that trying again would not cure: bad message, unauthorized, forbidden, wrong subprotocol.
const FATAL = new Set([4400, 4401, 4403, 4406]);

/**
 * Keeps one subscription alive for as long as the page is open.
 * `started` is called whenever events flow again, for the page to ask what it missed; `state` gets 'on', 'off' or 'refused'.
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
    // The server ended the subscription, perhaps to restart: connect again and ask what was missed.
    if (message.type === 'error' || message.type === 'complete') socket.close(4000);
  }

  function closed({ code }) {
    if (FATAL.has(code)) return state('refused');
    state('off');
    // 0.5 s, 1 s, 2 s … 15 s, and up to half as much again, so that a restart is not met by everyone at once.
    retry = setTimeout(connect, Math.min(15_000, 500 * 2 ** tries++) * (1 + Math.random() / 2));
  }

  addEventListener('online', () => {
    if (socket.readyState === WebSocket.CLOSED) connect();
  });
  connect();
}
