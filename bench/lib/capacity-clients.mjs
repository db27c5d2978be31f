// A process of clients of bench/capacity.mjs: raw WebSockets that answer pings, count events, and connect again when they are
// closed, after the times of graphql-ws.
import { randomBytes, randomUUID } from 'node:crypto';
import { connect } from 'node:net';
import { replyToMessages } from './reply.mjs';

const HANDSHAKES = 100;

/** A masked frame. Its mask is 0, and every text is short. */
function frame(first, text = '') {
  const body = Buffer.from(text);
  const length = body.length < 126 ? [0x80 | body.length] : [0xfe, body.length >> 8, body.length & 255];
  return Buffer.concat([Buffer.from([first, ...length, 0, 0, 0, 0]), body]);
}
const PONG = frame(0x8a);
const CLOSE = frame(0x88);

class Client {
  failures = 0;
  /** When its socket was closed. */
  since = undefined;

  constructor(fleet, index) {
    this.fleet = fleet;
    this.index = index;
  }

  connect() {
    const { ports, number, path } = this.fleet;
    this.step = -1;
    this.rest = Buffer.alloc(0);
    // Each address has its own ports.
    const localAddress = `127.${number + 1}.0.${1 + (this.index % 4)}`;
    const port = ports[this.index % ports.length];
    const socket = connect({ host: '127.0.0.1', port, localAddress, noDelay: true });
    socket.on('data', (chunk) =>
      this.read(this.rest.length === 0 ? chunk : Buffer.concat([this.rest, chunk])),
    );
    socket.on('error', () => undefined);
    socket.on('close', () => this.closed());
    socket.write(
      `GET ${path} HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: ${randomBytes(16).toString('base64')}\r\nSec-WebSocket-Protocol: graphql-transport-ws\r\n\r\n`,
    );
    this.socket = socket;
  }

  read(data) {
    let at = 0;
    if (this.step === -1) {
      at = data.indexOf('\r\n\r\n') + 4;
      if (at > 3 && data.toString('latin1', 9, 12) !== '101') return this.socket.destroy();
      if (at > 3) this.advance();
      else at = 0;
    }
    while (this.step > -1 && at + 2 <= data.length) {
      const length = data[at + 1];
      if (length === 126 && at + 4 > data.length) break;
      const end = at + (length === 126 ? 4 + data.readUInt16BE(at + 2) : 2 + length);
      if (end > data.length) break;
      this.receive(data[at], length);
      at = end;
    }
    this.rest = data.subarray(at);
  }

  receive(first, length) {
    if (first === 0x89) this.socket.write(PONG);
    else if (first === 0x88) this.socket.end(CLOSE);
    else if (this.step < this.fleet.steps.length - 1) this.advance();
    // The ping of Socket.IO is a message.
    else if (length === 1) this.socket.write(frame(0x81, '3'));
    else this.fleet.count();
  }

  advance() {
    const { steps } = this.fleet;
    const text = steps[++this.step];
    if (text !== '') this.socket.write(frame(0x81, text.replace('$id', randomUUID())));
    if (this.step < steps.length - 1) return;
    this.failures = 0;
    this.fleet.ready(this);
  }

  closed() {
    if (this.fleet.state === 'open') throw new Error('a server has closed a socket');
    if (this.fleet.state === 'closed') return;
    this.since ??= performance.now();
    setTimeout(() => this.connect(), 1000 * 2 ** this.failures++ + 300 + Math.random() * 2700);
  }
}

/** All clients of the process; its public methods answer the messages of the parent. */
class Fleet {
  clients = [];
  received = 0;

  /** `steps` are what a client sends first, and after each message of the server until it is ready. */
  async open({ count, ...settings }) {
    Object.assign(this, settings, { state: 'open' });
    this.clients = Array.from({ length: count }, (_, index) => new Client(this, index));
    for (let i = 0; i < count; i += HANDSHAKES) {
      const some = this.clients.slice(i, i + HANDSHAKES);
      const opened = this.wait(some.length);
      for (const client of some) client.connect();
      await opened;
    }
    return {};
  }

  wait(count) {
    this.left = count;
    return new Promise((resolve) => {
      this.done = resolve;
    });
  }

  ready({ since }) {
    if (since !== undefined) this.gaps.push((performance.now() - since) / 1000);
    if (--this.left === 0) this.done();
  }

  /** From now on sockets may be closed. Their clients connect to these ports. */
  move({ ports }) {
    Object.assign(this, { ports, state: 'moving', gaps: [] });
    this.back = this.wait(this.clients.length);
    return {};
  }

  async returned() {
    await this.back;
    this.state = 'open';
    return { gaps: this.gaps };
  }

  count() {
    if (++this.received === this.expected) this.reached();
  }

  /** Resolves when so many events have arrived since the start of the process. */
  async events({ total }) {
    this.expected = total;
    if (this.received < total) {
      await new Promise((resolve) => {
        this.reached = resolve;
      });
    }
    return {};
  }

  close() {
    this.state = 'closed';
    for (const { socket } of this.clients) socket.destroy();
    return {};
  }
}

const fleet = new Fleet();
replyToMessages((message) => fleet[message.ask](message));
