/** @tags node-lines graphql slow */
import { randomBytes } from 'node:crypto';
import { constants, deflateRawSync } from 'node:zlib';
import { events } from './connect-clients.ts';
import { clientFrame, compressedFrames, deflate, FIN, Peer, RSV1 } from './deflate-peer.ts';
import { type Served, serve, until } from './serve.ts';
import { CONTINUATION, TEXT } from './wire.ts';

// The cases of the Autobahn test suite for RFC 7692 (12.* and 13.*), and those of the RFC that it leaves out.

jest.setTimeout(60_000);

const start = () => serve({ perMessageDeflate: 'shared', ping: false });
const OFFER = 'permessage-deflate';
const AGREED = 'permessage-deflate; server_no_context_takeover; client_no_context_takeover';

const ECHO = 'query ($text: String) { hello(name: $text) }';
const echo = (id: string, text: string): string =>
  JSON.stringify({ id, type: 'subscribe', payload: { query: ECHO, variables: { text } } });

/** Sends the frames of an operation, and checks its result. */
async function expectEcho(peer: Peer, frames: readonly Buffer[], text: string): Promise<void> {
  peer.send(...frames);
  const result = JSON.parse(await peer.message());
  // A diff of long texts would take seconds.
  expect(result.payload.data.hello === `Hello ${text}` || result).toBe(true);
  expect(JSON.parse(await peer.message()).type).toBe('complete');
}

describe('offers of permessage-deflate', () => {
  const bits = [8, 9, 10, 11, 12, 13, 14, 15];
  it.each([
    ['permessage-deflate', AGREED],
    ['permessage-deflate; server_no_context_takeover', AGREED],
    ['permessage-deflate; client_no_context_takeover', AGREED],
    ['permessage-deflate; client_no_context_takeover; server_no_context_takeover', AGREED],
    ['permessage-deflate; server_max_window_bits=15', `server_max_window_bits=15`],
    ['permessage-deflate; server_max_window_bits="15"', `server_max_window_bits=15`],
    ['permessage-deflate ;client_max_window_bits', 'client_max_window_bits=12'],
    ['permessage-deflate; client_max_window_bits="15"', 'client_max_window_bits=12'],
    ...bits.map((size) => [
      `permessage-deflate; client_max_window_bits=${size}`,
      size > 12 ? 'client_max_window_bits=12' : AGREED,
    ]),
    // Only the first acceptable offer counts.
    ['permessage-deflate; server_max_window_bits=9, permessage-deflate', AGREED],
    [
      'permessage-deflate; unknown, permessage-deflate; server_max_window_bits=15',
      'server_max_window_bits=15',
    ],
    ['x-webkit-deflate-frame, permessage-deflate', AGREED],
    ['permessage-deflate, permessage-deflate; client_max_window_bits', AGREED],
  ])('the offer %s is accepted', async (offers, expected) => {
    const { port } = await start();
    const peer = await Peer.ready(port, offers);
    const agreed = peer.agreed ?? '';
    const sorted = (text: string) => text.split('; ').sort();
    const parts = expected.startsWith(OFFER) ? expected : `${AGREED}; ${expected}`;
    expect(sorted(agreed)).toEqual(sorted(parts));
    await expectEcho(peer, compressedFrames(deflate(echo('1', offers))), offers);
  });

  it.each([
    ...bits.slice(0, -1).map((size) => `permessage-deflate; server_max_window_bits=${size}`),
    'permessage-bzip2',
    'x-webkit-deflate-frame',
    'permessage-deflate2',
    'permessage-deflate; unknown',
    'permessage-deflate; constructor',
    'permessage-deflate; server_max_window_bits',
    'permessage-deflate; server_max_window_bits=',
    'permessage-deflate; server_max_window_bits=7',
    'permessage-deflate; server_max_window_bits=16',
    'permessage-deflate; server_max_window_bits=015',
    'permessage-deflate; server_max_window_bits=15.0',
    'permessage-deflate; server_max_window_bits="15',
    'permessage-deflate; server_max_window_bits=abc',
    'permessage-deflate; client_max_window_bits=',
    'permessage-deflate; client_max_window_bits=7',
    'permessage-deflate; client_max_window_bits=16',
    'permessage-deflate; client_max_window_bits=08',
    'permessage-deflate; client_max_window_bits=-9',
    'permessage-deflate; client_max_window_bits=1e1',
    'permessage-deflate; client_no_context_takeover=1',
    'permessage-deflate; server_no_context_takeover=true',
    'permessage-deflate; server_no_context_takeover; server_no_context_takeover',
    'permessage-deflate; client_max_window_bits; client_max_window_bits=10',
    'permessage-deflate; server_max_window_bits=15; server_max_window_bits=15',
    'permessage-deflate;',
    'permessage-deflate; ;',
    ';',
    ',',
    'permessage-deflate permessage-deflate',
    'permessage-deflate; client_max_window_bits = 10 = 10',
  ])('the offer %s is declined, and the socket works without compression', async (offers) => {
    const { port } = await start();
    const peer = await Peer.ready(port, offers);
    expect(peer.agreed).toBeUndefined();
    peer.sendPlain(echo('1', 'x'.repeat(5000)));
    expect((await peer.frame()).first).toBe(FIN | TEXT);
  });
});

const WORDS = ['{"id": 1, ', '"name": "Zoë", ', '"price": 0.25}, ', '漢字 ', 'deflate ', '\n'];
/** Texts of about `size` bytes with little, some and no repetition. */
const textsOf = (size: number): string[] => [
  'x'.repeat(size),
  Array.from({ length: size / 8 }, (_, i) => WORDS[(i * i * 31 + i) % WORDS.length]).join(''),
  randomBytes(size).toString('base64').slice(0, size),
  '漢'.repeat(size / 3),
];
const SIZES = [16, 256, 1024, 4096, 32_768, 131_072];

describe('compressed messages', () => {
  it.each([
    [OFFER, 15],
    [`${OFFER}; client_no_context_takeover; server_no_context_takeover`, 15],
    [`${OFFER}; server_max_window_bits=15`, 15],
    [`${OFFER}; client_max_window_bits`, 12],
    [`${OFFER}; client_max_window_bits=9`, 9],
    // zlib has no window of 8 bits: it uses 9 (RFC 7692 §7.1.2.2 allows the client no more than it has agreed to).
    [`${OFFER}; client_max_window_bits=8`, 9],
    [`${OFFER}; server_max_window_bits=9, ${OFFER}; client_max_window_bits=15`, 12],
  ])('messages of 16 bytes to 128 KiB, whole and in fragments, are echoed: %s', async (offer, windowBits) => {
    const { port } = await start();
    const peer = await Peer.ready(port, offer);
    for (const [index, size] of SIZES.entries()) {
      for (const text of textsOf(size)) {
        const payload = deflate(echo(`${index}`, text), { windowBits });
        for (const piece of [Number.POSITIVE_INFINITY, 256, 1 + (payload.length >> 1)]) {
          await expectEcho(peer, compressedFrames(payload, piece), text);
        }
      }
    }
  });

  it('messages that are sent without waiting are all answered, compressed and plain ones', async () => {
    const { port } = await start();
    const peer = await Peer.ready(port, OFFER);
    const count = 500;
    for (let index = 0; index < count; index++) {
      const message = echo(`${index}`, `text ${index} `.repeat(index));
      if (index % 3 === 0) peer.sendPlain(message);
      else peer.send(...compressedFrames(deflate(message), index % 3 === 1 ? 100 : undefined));
    }
    const results = new Map<string, string>();
    while (results.size < count) {
      const { id, type, payload } = JSON.parse(await peer.message());
      if (type === 'next') results.set(id, payload.data.hello);
    }
    for (let index = 0; index < count; index++) {
      expect(results.get(`${index}`)).toBe(`Hello ${`text ${index} `.repeat(index)}`);
    }
  });

  const text = 'Hello Hello Hello '.repeat(50);
  const message = echo('1', text);
  const half = message.length >> 1;
  const whole = (payload: Buffer) => compressedFrames(payload);
  const fragment = (first: number, payload: Buffer) => clientFrame(first, payload);
  const compressed = deflate(message);
  it.each([
    ['in stored blocks', whole(deflate(message, { level: 0 }))],
    ['in a block with fixed codes', whole(deflate(message, { strategy: constants.Z_FIXED }))],
    ['without matches', whole(deflate(message, { strategy: constants.Z_HUFFMAN_ONLY }))],
    [
      'in two blocks, one of them stored',
      whole(
        Buffer.concat([
          deflateRawSync(message.slice(0, half), { finishFlush: constants.Z_SYNC_FLUSH, level: 0 }),
          deflate(message.slice(half)),
        ]),
      ),
    ],
    [
      'that ends with a block with BFINAL, and a byte',
      whole(Buffer.concat([deflateRawSync(message), Buffer.alloc(1)])),
    ],
    ['that ends with a block with BFINAL', whole(deflateRawSync(message))],
    ['that ends with an empty block', whole(Buffer.concat([compressed, Buffer.from([0, 0, 0xff, 0xff, 0])]))],
    ['in fragments of one byte', compressedFrames(compressed, 1)],
    [
      'with an empty first and an empty last fragment',
      [
        fragment(RSV1 | TEXT, Buffer.alloc(0)),
        fragment(CONTINUATION, compressed),
        fragment(FIN | CONTINUATION, Buffer.alloc(0)),
      ],
    ],
    [
      'with a ping and a pong between its fragments',
      [
        fragment(RSV1 | TEXT, compressed.subarray(0, 20)),
        fragment(FIN | 10, Buffer.from('pong')),
        fragment(FIN | CONTINUATION, compressed.subarray(20)),
      ],
    ],
  ])('a message %s is read, and the next one too', async (_, frames) => {
    const { port } = await start();
    const peer = await Peer.ready(port, OFFER);
    await expectEcho(peer, frames, text);
    await expectEcho(peer, frames, text);
    await expectEcho(peer, whole(deflate(echo('1', 'after it'))), 'after it');
  });

  it('a ping between compressed fragments is answered at once, without compression', async () => {
    const { port } = await start();
    const peer = await Peer.ready(port, OFFER);
    peer.send(fragment(RSV1 | TEXT, compressed.subarray(0, 20)), fragment(FIN | 9, Buffer.from('ping')));
    expect(await peer.frame()).toEqual({ first: FIN | 10, payload: Buffer.from('ping') });
    await expectEcho(peer, [fragment(FIN | CONTINUATION, compressed.subarray(20))], text);
  });
});

/** A second socket, whose subscription must go on. */
async function bystander({ port, live }: Served): Promise<() => Promise<void>> {
  const peer = await Peer.ready(port, OFFER);
  peer.sendPlain(JSON.stringify(events('1')));
  await until(() => live.open === 1);
  return async () => {
    live.publish('a', 'still here');
    expect(JSON.parse(await peer.message())).toMatchObject({ payload: { data: { events: 'still here' } } });
  };
}

describe('messages that RFC 7692 forbids', () => {
  const hello = deflate(echo('1', 'hello'));
  const invalid = Buffer.concat([Buffer.from(echo('1', 'a')), Buffer.from([0xff, 0xfe])]);
  const bomb = deflate(Buffer.alloc(64 * 1024 * 1024, ' '));
  it.each<[string, string | undefined, readonly Buffer[], number]>([
    ['RSV1 without an extension', undefined, compressedFrames(hello), 1002],
    ['RSV1 after a declined offer', `${OFFER}; server_max_window_bits=10`, compressedFrames(hello), 1002],
    [
      'RSV1 on a continuation',
      OFFER,
      [clientFrame(RSV1 | TEXT, hello.subarray(0, 5)), clientFrame(FIN | RSV1, hello.subarray(5))],
      1002,
    ],
    [
      'RSV1 on the continuation of a plain message',
      OFFER,
      [clientFrame(TEXT, Buffer.from('{')), clientFrame(FIN | RSV1, hello)],
      1002,
    ],
    ['RSV1 on a ping', OFFER, [clientFrame(FIN | RSV1 | 9, deflate('ping'))], 1002],
    ['RSV1 on a pong', OFFER, [clientFrame(FIN | RSV1 | 10, deflate('pong'))], 1002],
    ['RSV1 on a close', OFFER, [clientFrame(FIN | RSV1 | 8, Buffer.from([3, 0xe8]))], 1002],
    ['RSV2', OFFER, [clientFrame(FIN | 0x20 | TEXT, hello)], 1002],
    ['RSV1 and RSV3', OFFER, [clientFrame(FIN | RSV1 | 0x10 | TEXT, hello)], 1002],
    ['an invalid block type', OFFER, compressedFrames(Buffer.from([0x07, 1, 2, 3])), 1007],
    ['a stored block with a wrong length', OFFER, compressedFrames(Buffer.from([0, 5, 0, 5, 0, 1, 2])), 1007],
    ['a distance before the start', OFFER, compressedFrames(Buffer.from([0x4b, 0x04, 0x12, 0x00])), 1007],
    ['bytes that are not compressed', OFFER, compressedFrames(Buffer.from(echo('1', 'plain'))), 1007],
    ['invalid UTF-8', OFFER, compressedFrames(deflate(invalid)), 1007],
    ['invalid UTF-8 in fragments', OFFER, compressedFrames(deflate(invalid), 7), 1007],
    ['half a character', OFFER, compressedFrames(deflate(Buffer.from([0x22, 0xe6, 0xbc]))), 1007],
    ['64 MiB of spaces', OFFER, compressedFrames(bomb), 1009],
    ['64 MiB of spaces in fragments', OFFER, compressedFrames(bomb, 1000), 1009],
    ['an empty message', OFFER, compressedFrames(Buffer.alloc(1)), 4400],
    ['an empty frame', OFFER, compressedFrames(Buffer.alloc(0)), 4400],
  ])('%s closes the socket with the offer %s, and no other', async (_, offer, frames, code) => {
    const served = await start();
    const continues = await bystander(served);
    const peer = await Peer.ready(served.port, offer);
    peer.send(...frames);
    expect(await peer.closeCode()).toBe(code);
    await continues();
  });

  it('a message that refers to the one before it, as with context takeover, closes the socket with 1007', async () => {
    const served = await start();
    const peer = await Peer.ready(served.port, OFFER);
    await expectEcho(peer, compressedFrames(hello), 'hello');
    const dictionary = Buffer.from(echo('1', 'hello'));
    peer.send(...compressedFrames(deflate(echo('2', 'hello'), { dictionary })));
    expect(await peer.closeCode()).toBe(1007);
  });

  it('messages that are cut off do not change the next one', async () => {
    const { port } = await start();
    for (let cut = 1; cut < hello.length; cut++) {
      const peer = await Peer.ready(port, OFFER);
      peer.send(
        ...compressedFrames(hello.subarray(0, cut)),
        ...compressedFrames(deflate(echo('2', 'after'))),
      );
      expect([1007, 4400]).toContain(await peer.closeCode());
    }
  });

  it('sixty bombs of 64 MiB at once are stopped at limits.messageBytes', async () => {
    const served = await start();
    const continues = await bystander(served);
    const attackers = await Promise.all(Array.from({ length: 60 }, () => Peer.ready(served.port, OFFER)));
    const before = process.memoryUsage().rss;
    let most = 0;
    const timer = setInterval(() => {
      most = Math.max(most, process.memoryUsage().rss);
    }, 1);
    for (const peer of attackers) peer.send(...compressedFrames(bomb));
    for (const peer of attackers) expect(await peer.closeCode()).toBe(1009);
    clearInterval(timer);
    // Without the limit: 3.8 GiB.
    expect(most - before).toBeLessThan(512 * 1024 * 1024);
    await continues();
  });
});
