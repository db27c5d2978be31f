// A cheap WebSocket client for the load generator: it counts frames and never builds a message.
import { randomBytes, randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { connect } from 'node:net';

/** Opens `count` sockets with one subscription each (or `operations`), each under a different id. */
export async function openSockets(port, count, { protocol, query, operations = 1, deflates = false }) {
  const fleet = { sockets: [], frames: 0, expected: Number.POSITIVE_INFINITY, reached: () => undefined };
  for (let i = 0; i < count; i += 50) {
    const some = Array.from({ length: Math.min(50, count - i) }, () =>
      open(port, { protocol, query, operations, deflates }, fleet),
    );
    fleet.sockets.push(...(await Promise.all(some)));
  }
  return fleet;
}

/** Resolves when the clients have received this many more frames. */
export function frames(fleet, more) {
  fleet.frames = 0;
  fleet.expected = more;
  return new Promise((resolve) => {
    fleet.reached = resolve;
  });
}

async function open(port, { protocol, query, operations, deflates }, fleet) {
  const socket = connect({ port, host: '127.0.0.1', noDelay: true });
  await once(socket, 'connect');
  const extensions = deflates ? 'Sec-WebSocket-Extensions: permessage-deflate\r\n' : '';
  socket.write(
    `GET /graphql HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: ${randomBytes(16).toString('base64')}\r\nSec-WebSocket-Protocol: ${protocol}\r\n${extensions}\r\n`,
  );
  await waitFor(socket, '\r\n\r\n');
  socket.write(text({ type: 'connection_init', payload: {} }));
  await waitFor(socket, 'connection_ack');
  const type = protocol === 'graphql-ws' ? 'start' : 'subscribe';
  for (let i = 0; i < operations; i++) socket.write(text({ id: randomUUID(), type, payload: { query } }));
  count(socket, fleet);
  return socket;
}

async function waitFor(socket, words) {
  let seen = '';
  while (!seen.includes(words)) seen += String((await once(socket, 'data'))[0]);
}

/** Counts text frames by their headers, compressed or not. */
function count(socket, fleet) {
  let skip = 0;
  let rest;
  socket.on('data', (chunk) => {
    let data = rest === undefined ? chunk : Buffer.concat([rest, chunk]);
    rest = undefined;
    let at = skip;
    while (at < data.length) {
      const short = data.length - at < 10;
      const length = data[at + 1];
      if (short && (length === undefined || data.length - at < (length < 126 ? 2 : length === 126 ? 4 : 10)))
        break;
      if (data[at] === 0x81 || data[at] === 0xc1) fleet.frames++;
      at +=
        length < 126
          ? 2 + length
          : length === 126
            ? 4 + data.readUInt16BE(at + 2)
            : 10 + Number(data.readBigUInt64BE(at + 2));
    }
    if (at < data.length) {
      rest = data.subarray(at);
      at = data.length;
    }
    skip = at - data.length;
    data = undefined;
    if (fleet.frames >= fleet.expected) fleet.reached();
  });
}

/** A masked text frame. */
function text(message) {
  const body = Buffer.from(JSON.stringify(message));
  const head =
    body.length < 126
      ? Buffer.from([0x81, 0x80 | body.length])
      : Buffer.from([0x81, 0xfe, body.length >> 8, body.length & 255]);
  return Buffer.concat([head, Buffer.alloc(4), body]);
}
