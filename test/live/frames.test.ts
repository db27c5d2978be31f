/** @tags node-lines graphql */
import { PassThrough } from 'node:stream';
import { writeFrames } from '../../src/live/frames.ts';
import { type Envelope, Messages, NO_ENVELOPE } from '../../src/live/queue.ts';
import { hash } from '../engine/choices.ts';
import { MODERN, ready } from './client.ts';
import { events, received } from './connect-clients.ts';
import { serve, until } from './serve.ts';

const prefixOf = (id: string): string => Buffer.from(`{"id":"${id}","payload":`).toString('latin1');

const ENVELOPES: readonly Envelope[] = [
  { before: prefixOf('1'), after: '}' },
  { before: prefixOf('2'), after: '}' },
  { before: prefixOf('three ü 漢'), after: '}' },
  { before: prefixOf('x'.repeat(200)), after: '}' },
];
const BODIES: readonly Buffer[] = [
  '1',
  '{"data":"ü"}',
  'x'.repeat(80),
  '漢'.repeat(90),
  'y'.repeat(9000),
].map((text) => Buffer.from(text));

/** One frame (RFC 6455, section 5.2). */
function frameOf({ before, after }: Envelope, body: Buffer): Buffer {
  const text = Buffer.from(before + body.toString('latin1') + after, 'latin1');
  const { length } = text;
  const head = length < 126 ? [0x81, length] : [0x81, 126, length >> 8, length & 255];
  return Buffer.concat([Buffer.from(head), text]);
}

/** The bytes that were written. On Node 26 `read` returns those of one `write`. */
function bytesOf(stream: PassThrough): Buffer {
  const chunks: Buffer[] = [];
  for (let chunk = stream.read(); chunk !== null; chunk = stream.read()) chunks.push(chunk);
  return Buffer.concat(chunks);
}

/** Chooses pseudo-randomly. */
const pick = <T>(list: readonly T[], seed: string): T => list[hash(seed, 11) % list.length] as T;

describe('frames of repeated results', () => {
  it('the writer sends the same frames whether or not another socket had the same results', () => {
    for (let fleet = 0; fleet < 300; fleet++) {
      const bodies = Array.from({ length: 1 + (hash(`${fleet}`, 1) % 8) }, (_, i) =>
        pick(BODIES, `${fleet} ${i}`),
      );
      for (let socket = 0; socket < 4; socket++) {
        const frames = new Messages();
        const expected = bodies.map((body, i) => {
          // A complete message has no envelope.
          const isPlain = hash(`plain ${fleet} ${socket} ${i}`, 3) % 40 === 0;
          const envelope = isPlain ? NO_ENVELOPE : pick(ENVELOPES, `${fleet} ${socket} ${i >> 1}`);
          frames.push(envelope, body);
          return frameOf(envelope, body);
        });
        const stream = new PassThrough({ highWaterMark: 1024 * 1024 });
        writeFrames(stream, frames);
        expect(bytesOf(stream).equals(Buffer.concat(expected))).toBe(true);
      }
    }
  });

  it('private subscriptions with equal and with different results get their own messages in order', async () => {
    const served = await serve({ ping: false });
    const ids = ['1', '22', 'ü', '漢字', 'x'.repeat(200)];
    const clients = await Promise.all(Array.from({ length: 12 }, () => ready(served.url, MODERN)));
    for (const [index, client] of clients.entries()) {
      client.send(events(ids[index % ids.length] as string));
      // Two subscriptions on some sockets, some with other events.
      if (index % 3 === 0) client.send(events('second', index % 2 === 0 ? 'a' : 'b'));
    }
    await until(() => served.subscriptions.stats().sources === 16);
    for (let burst = 0; burst < 20; burst++) {
      for (let i = 0; i < 1 + (burst % 9); i++) {
        served.live.publish('a', `${burst} ${i % 3} ü`);
        served.live.publish('b', `b ${burst} ${i}`);
      }
      await new Promise((resolve) => setTimeout(resolve, burst % 3));
    }
    const all = Array.from({ length: 20 }, (_, burst) => burst);
    const ofA = all.flatMap((burst) =>
      Array.from({ length: 1 + (burst % 9) }, (_, i) => `${burst} ${i % 3} ü`),
    );
    const ofB = all.flatMap((burst) => Array.from({ length: 1 + (burst % 9) }, (_, i) => `b ${burst} ${i}`));
    for (const [index, client] of clients.entries()) {
      const id = ids[index % ids.length] as string;
      await until(() => received(client, id).length >= ofA.length);
      expect(received(client, id)).toEqual(ofA);
      if (index % 3 !== 0) continue;
      await until(() => received(client, 'second').length >= ofA.length);
      expect(received(client, 'second')).toEqual(index % 2 === 0 ? ofA : ofB);
    }
  });
});
