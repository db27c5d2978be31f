import { randomInt, randomUUID } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import type { EventLink, EventTransport, StoredMessage } from '../../types/pubsub.ts';
import type { TestTransportOptions, TransportFactory } from '../../types/testing.ts';
import { withTimeLimit } from '../http/timers.ts';
import { flag, optionalFunction, type Rules, resolveOptions, wrongArgument } from '../options/rules.ts';
import { TRANSPORT_TEST_OPTIONS } from '../options/scopes.ts';
import { isFunction } from '../options/values.ts';

interface Settings {
  readonly interrupt: (() => unknown) | undefined;
  readonly single: boolean;
}

const RULES: Rules<Settings> = {
  interrupt: optionalFunction(),
  single: flag(false),
};

/** The limits of the option `history`. */
const HISTORY = { length: 1000, ttl: 300_000 };
const ID = /^[\w.:~-]{1,64}$/;
/** Milliseconds in which a message must arrive, and a call settle. Tests shorten them. */
export const TIMES = { limit: 10_000 };
/** Milliseconds in which a message that must not come would arrive. */
const QUIET = 100;

const pause = (milliseconds: number): Promise<void> =>
  new Promise((resolve) => {
    setTimeout(resolve, milliseconds);
  });

/** What a transport has reported, in order. */
type Report =
  | { readonly kind: 'gap'; readonly channel: string | undefined }
  | {
      readonly kind: 'message';
      readonly channel: string;
      readonly payload: string;
      readonly link: EventLink | undefined;
    };
type Message = Extract<Report, { kind: 'message' }>;

/** Runs all checks. Rejects with an error that has a line for each broken rule. */
export async function checkTransport(
  create: TransportFactory,
  options: TestTransportOptions | undefined,
): Promise<readonly string[]> {
  if (!isFunction(create))
    throw wrongArgument(TRANSPORT_TEST_OPTIONS, 'create', create, 'a function that returns a transport');
  const settings = resolveOptions<Settings>(TRANSPORT_TEST_OPTIONS, options, RULES);
  const passed: string[] = [];
  const broken: string[] = [];
  for (const [name, check] of Object.entries(CHECKS)) {
    const pair = await openPair(create, settings);
    try {
      if ((await check(pair)) !== SKIPPED) passed.push(name);
    } catch (error) {
      broken.push(`${name}: ${(error as Error).message}`);
    } finally {
      await pair.close();
    }
  }
  if (broken.length === 0) return passed;
  throw Object.assign(new Error(`The transport breaks its contract:\n- ${broken.join('\n- ')}`), {
    code: 'ERR_TRANSPORT',
  });
}

const SKIPPED = Symbol('skipped');

/** Two processes: one subscribes, the other one publishes. */
class Pair {
  readonly subscriber: EventTransport;
  readonly publisher: EventTransport;
  readonly settings: Settings;
  readonly reports: Report[] = [];

  constructor(subscriber: EventTransport, publisher: EventTransport, settings: Settings) {
    this.subscriber = subscriber;
    this.publisher = publisher;
    this.settings = settings;
    const ignored = { message() {}, gap() {}, lost() {}, refused() {}, error() {} };
    const listener = {
      ...ignored,
      message: (channel: string, payload: string, link?: EventLink) =>
        void this.reports.push({ kind: 'message', channel, payload, link }),
      gap: (channel?: string) => void this.reports.push({ kind: 'gap', channel }),
    };
    subscriber.open(listener, HISTORY);
    if (publisher !== subscriber) publisher.open(ignored, HISTORY);
  }

  messages(channel: string): readonly Message[] {
    return this.reports.filter(
      (report) => report.kind === 'message' && report.channel === channel,
    ) as Message[];
  }

  payloads(channel: string): readonly string[] {
    return this.messages(channel).map(({ payload }) => payload);
  }

  /** Repeats a call while the connection is not open yet, or again. */
  async whenOpen<T>(call: () => T | Promise<T>): Promise<T> {
    const end = performance.now() + TIMES.limit;
    for (;;) {
      try {
        return await call();
      } catch (error) {
        if (performance.now() > end) throw error;
        await pause(20);
      }
    }
  }

  subscribe(channel: string): Promise<void> {
    return this.settles('subscribe()', this.subscriber.subscribe(channel));
  }

  /** Rejects if a call does not settle within the time limit. */
  settles<T>(call: string, promise: Promise<T>): Promise<T> {
    const { limit } = TIMES;
    return withTimeLimit(promise, limit, () => new Error(`${call} did not settle within ${limit} ms`));
  }

  /** Waits for a condition; false after the time limit. */
  async until(isMet: () => boolean): Promise<boolean> {
    const end = performance.now() + TIMES.limit;
    while (!isMet() && performance.now() < end) await pause(5);
    return isMet();
  }

  /** @throws Error unless exactly these payloads arrive, in this order. */
  async expectPayloads(channel: string, expected: readonly string[]): Promise<void> {
    await this.until(() => this.messages(channel).length >= expected.length);
    await pause(QUIET);
    assertSequence(this.payloads(channel), expected);
  }

  async close(): Promise<void> {
    const transports = [...new Set([this.subscriber, this.publisher])];
    await Promise.allSettled(transports.map((each) => this.settles('close()', each.close())));
  }
}

async function openPair(create: TransportFactory, settings: Settings): Promise<Pair> {
  const subscriber = await create();
  const pair = new Pair(subscriber, settings.single ? subscriber : await create(), settings);
  // The first calls may have to wait for the connections.
  const [channel] = newChannels(1) as [string];
  await pair.whenOpen(() => pair.publisher.publish(channel, '0'));
  await pair.whenOpen(() => subscriber.history?.newest(channel));
  return pair;
}

const newChannels = (count: number): string[] =>
  Array.from({ length: count }, (_, index) => `espalier-test:${randomUUID()}:${index}`);

function assertSequence(actual: readonly string[], expected: readonly string[]): void {
  if (isDeepStrictEqual(actual, expected)) return;
  const twice = actual.find((payload, index) => actual.indexOf(payload) !== index);
  if (twice !== undefined) throw new Error(`the message ${short(twice)} was delivered twice`);
  const missing = expected.find((payload) => !actual.includes(payload));
  if (missing !== undefined) throw new Error(`the message ${short(missing)} did not arrive`);
  const other = actual.find((payload) => !expected.includes(payload));
  if (other !== undefined) throw new Error(`the message ${short(other)} was never published`);
  throw new Error(`the messages arrived in another order: ${actual.map(short).join(', ').slice(0, 80)}`);
}

const createStart = (): string => `0-${randomInt(1, 2 ** 47)}`;

const short = (text: string): string => (text.length > 20 ? `${text.slice(0, 20)}...` : text || '(empty)');

function assert(condition: boolean, message: string): asserts condition {
  if (!condition) throw new Error(message);
}

type Check = (pair: Pair) => Promise<unknown>;

const CHECKS: Readonly<Record<string, Check>> = {
  'subscribe resolves when later messages arrive': checkSubscribe,
  'messages arrive once and in order': checkOrder,
  'any JSON is delivered unchanged': checkTexts,
  'channels are independent': checkChannels,
  'links name the message before': checkLinks,
  'the history is read without a gap': checkHistory,
  'an interruption loses nothing silently': checkInterruption,
  'close ends the transport': checkClose,
};

async function checkSubscribe(pair: Pair): Promise<void> {
  for (let round = 0; round < 3; round++) {
    const channels = newChannels(8);
    const arrived = await Promise.all(
      channels.map(async (channel, index) => {
        // Some are subscribed to again before they are confirmed.
        const earlier = index % 2 === 0 ? undefined : pair.subscribe(channel);
        await pair.subscribe(channel);
        await pair.publisher.publish(channel, '1');
        const hasArrived = await pair.until(() => pair.messages(channel).length > 0);
        await earlier;
        return hasArrived;
      }),
    );
    assert(!arrived.includes(false), 'a message that was published after subscribe() did not arrive');
    // To subscribe again verifies the subscription.
    await Promise.all(channels.map((channel) => pair.subscribe(channel)));
    await Promise.all(channels.map((channel) => pair.publisher.publish(channel, '2')));
    await Promise.all(channels.map((channel) => pair.expectPayloads(channel, ['1', '2'])));
  }
}

async function checkOrder(pair: Pair): Promise<void> {
  const channels = newChannels(3);
  await Promise.all(channels.map((channel) => pair.subscribe(channel)));
  const payloads = Array.from({ length: 200 }, (_, index) => String(index));
  await Promise.all(
    payloads.flatMap((payload) => channels.map((channel) => pair.publisher.publish(channel, payload))),
  );
  for (const channel of channels) await pair.expectPayloads(channel, payloads);
}

/** Characters of two, three and four bytes. As a literal they would double the memory of the module's text. */
const UNICODE = String.fromCodePoint(0xe4, 0x20ac, 0x1f600);

async function checkTexts(pair: Pair): Promise<void> {
  const [name] = newChannels(1) as [string];
  const texts = [
    '',
    '"@0-0 1-1"',
    `"${UNICODE}"`,
    '"\\u0000"',
    `"${'x'.repeat(100_000)}"`,
    '"\'; --"',
    '\n{\r\t}',
  ];
  for (const channel of [name, `${name} {${UNICODE}}: "'%`, `${name}${'long'.repeat(40)}`]) {
    await pair.subscribe(channel);
    for (const text of texts) await pair.publisher.publish(channel, text);
    await pair.expectPayloads(channel, texts);
  }
}

async function checkChannels(pair: Pair): Promise<void> {
  const [kept, left, late] = newChannels(3) as [string, string, string];
  await Promise.all([pair.subscribe(kept), pair.subscribe(left)]);
  pair.subscriber.unsubscribe(left);
  // Other subscriptions are not affected.
  for (const channel of [kept, late]) await pair.publisher.publish(channel, '1');
  await pair.expectPayloads(kept, ['1']);
  await pair.publisher.publish(left, '1');
  await pause(QUIET);
  assert(pair.messages(late).length === 0, 'a message of a channel without a subscription arrived');
  assert(pair.messages(left).length === 0, 'a message that was published after unsubscribe() arrived');
  for (const channel of [left, late]) {
    await pair.subscribe(channel);
    await pair.publisher.publish(channel, '2');
    await pair.until(() => pair.messages(channel).length > 0);
    assert(!pair.payloads(channel).includes('1'), 'a message that was published before subscribe() arrived');
    await pair.expectPayloads(channel, ['2']);
  }
  pair.subscriber.unsubscribe(left);
  await pair.subscribe(left);
  // The cancelled subscription does not end the new one, also not later.
  for (const payload of ['3', '4']) {
    await pair.publisher.publish(left, payload);
    await pair.expectPayloads(left, ['2', '3', '4'].slice(0, Number(payload) - 1));
  }
  await checkNames(pair);
}

/** Names that patterns, a folding of characters or a limit of lengths make equal. */
async function checkNames(pair: Pair): Promise<void> {
  const [name] = newChannels(1) as [string];
  const long = name + 'x'.repeat(200);
  const accent = String.fromCodePoint(0x301);
  const names = [
    ...[name, `${name}:1`, `${name} `, name.toUpperCase(), `${name}*`, `${name}.1`, `${name}.*`, `${name}.>`],
    ...[`${name}/1`, `${name}/+`, `${name}/#`, `${long}1`, `${long}2`],
    ...[`${name}e${accent}`, `${name}e${accent}`.normalize()],
  ];
  await Promise.all(names.map((each) => pair.subscribe(each)));
  for (const each of names) await pair.publisher.publish(each, each);
  await pair.until(() => names.every((each) => pair.messages(each).length > 0));
  await pause(QUIET);
  for (const each of names) {
    const other = pair.payloads(each).find((payload) => payload !== each);
    assert(other === undefined, `the channel "${each}" got a message of the channel "${other}"`);
    assertSequence(pair.payloads(each), [each]);
  }
}

async function checkLinks(pair: Pair): Promise<unknown> {
  const { history } = pair.subscriber;
  if (history === undefined) return SKIPPED;
  const [channel] = newChannels(1) as [string];
  await pair.subscribe(channel);
  let previous = await startOf(pair, channel);
  const payloads = Array.from({ length: 50 }, (_, index) => String(index));
  for (const payload of payloads) await pair.publisher.publish(channel, payload);
  await pair.expectPayloads(channel, payloads);
  const seen = new Set([previous]);
  for (const { link, payload } of pair.messages(channel)) {
    assert(link !== undefined, `the message ${payload} has no link`);
    assert(ID.test(link.id), `the id ${short(link.id)} has characters that ids cannot have`);
    assert(!seen.has(link.id), `the id ${link.id} was used twice`);
    assert(
      link.previous === previous,
      `link.previous of the message ${payload} is ${link.previous} instead of ${previous}`,
    );
    previous = link.id;
    seen.add(previous);
  }
  const newest = await history.newest(channel);
  assert(newest === previous, `newest() is ${newest} instead of ${previous}`);
  return undefined;
}

async function checkHistory(pair: Pair): Promise<unknown> {
  const { history } = pair.subscriber;
  if (history === undefined) return SKIPPED;
  const [channel, other] = newChannels(2) as [string, string];
  const start = await startOf(pair, channel);
  assert((await history.read(channel, start, 10)).length === 0, 'an empty channel has events');
  const payloads = Array.from({ length: 25 }, (_, index) => String(index));
  for (const payload of payloads) {
    await pair.publisher.publish(channel, payload);
    await pair.publisher.publish(other, `other ${payload}`);
  }
  const stored = await readAll(pair, channel, start);
  assertSequence(
    stored.map(({ payload }) => payload),
    payloads,
  );
  const middle = await readAll(pair, channel, stored[9]?.id ?? '');
  assertSequence(
    middle.map(({ payload }) => payload),
    payloads.slice(10),
  );
  for (const id of ['7-7', '0-0', `${stored[9]?.id}9`, createStart(), 'unknown']) {
    const found = await history.read(channel, id, 10);
    assert(found === 'missed', `read() after the unknown id ${id} returned events instead of 'missed'`);
  }
  return undefined;
}

/** Returns the id of the start of a channel without events. Clients that continue after it must learn of a loss. */
async function startOf(pair: Pair, channel: string): Promise<string> {
  const offered = createStart();
  const newest = (id: string) => pair.whenOpen(() => pair.subscriber.history?.newest(channel, id));
  const start = await newest(offered);
  assert(start !== undefined, 'newest() returned no id for a channel without events');
  assert(ID.test(start), `the id ${short(start)} of the start has characters that ids cannot have`);
  const isNew = start.length >= LEAST_START && /\d/.test(start);
  assert(isNew, `the id ${start} of the start would be the same after the events were lost`);
  const again = await newest(createStart());
  assert(again === start, `the id of the start has changed from ${start} to ${again} without an event`);
  return start;
}

/** Characters of the id of a start: fewer are no time or random number, and another start might have them too. */
const LEAST_START = 8;

/** Reads all events after an id, a few at a time. */
async function readAll(pair: Pair, channel: string, after: string): Promise<readonly StoredMessage[]> {
  const limit = 7;
  const all: StoredMessage[] = [];
  for (let position = after; ; ) {
    // The connection that reads may notice an interruption after the others.
    const page = await pair.whenOpen(() => pair.subscriber.history?.read(channel, position, limit));
    assert(page !== undefined && page !== 'missed', `read() after ${position} returned 'missed'`);
    assert(page.length <= limit, `read() returned ${page.length} events, more than ${limit}`);
    const last = page.at(-1);
    if (last === undefined) return all;
    all.push(...page);
    position = last.id;
  }
}

async function checkInterruption(pair: Pair): Promise<unknown> {
  const { interrupt } = pair.settings;
  if (interrupt === undefined) return SKIPPED;
  const [channel] = newChannels(1) as [string];
  await pair.subscribe(channel);
  const start = pair.subscriber.history && (await startOf(pair, channel));
  const confirmed: number[] = [];
  let count = 0;
  let isOver = false;
  const publishing = (async () => {
    while (!isOver) {
      const payload = count++;
      await pair.publisher.publish(channel, String(payload)).then(
        () => void confirmed.push(payload),
        () => undefined,
      );
      await pause(2);
    }
  })();
  await pause(QUIET);
  await interrupt();
  const later = count;
  const isBack = await pair.until(() => pair.payloads(channel).some((payload) => Number(payload) >= later));
  isOver = true;
  await publishing;
  assert(isBack, 'no message arrives after the interruption');
  const last = String(confirmed.at(-1));
  await pair.until(() => pair.payloads(channel).includes(last));
  await pause(QUIET);
  assertNoticed(
    pair.reports.filter((report) => report.channel === channel || report.channel === undefined),
    confirmed,
  );
  if (start === undefined) return undefined;
  const stored = (await readAll(pair, channel, start)).map(({ payload }) => Number(payload));
  const missing = confirmed.find((each) => !stored.includes(each));
  assert(missing === undefined, `the history lacks the message ${missing}, whose publish() has resolved`);
  return undefined;
}

/** @throws Error if a message is missing, and neither a gap nor a link shows that. */
function assertNoticed(reports: readonly Report[], confirmed: readonly number[]): void {
  let before: Message | undefined;
  let hasGap = false;
  for (const report of reports) {
    if (report.kind === 'gap') {
      hasGap = true;
      continue;
    }
    const last = Number(before?.payload ?? -1);
    const payload = Number(report.payload);
    assert(payload !== last, `the message ${payload} was delivered twice`);
    assert(payload > last, `the message ${payload} arrived after ${last}`);
    const lost = confirmed.find((each) => each > last && each < payload);
    const isLinked = before?.link === undefined || before.link.id === report.link?.previous;
    if (lost !== undefined && !hasGap && isLinked)
      throw new Error(`the message ${lost} was lost, and gap() was not called before the next one`);
    before = report;
    hasGap = false;
  }
  const end = Number(before?.payload ?? -1);
  const lost = confirmed.find((each) => each > end);
  assert(lost === undefined || hasGap, `the message ${lost} was lost after the interruption`);
}

async function checkClose(pair: Pair): Promise<void> {
  const [channel] = newChannels(1) as [string];
  await pair.subscribe(channel);
  await pair.settles('close()', pair.subscriber.close());
  if (!pair.settings.single) await pair.publisher.publish(channel, '1');
  await pause(QUIET);
  assert(pair.messages(channel).length === 0, 'a message arrived after close()');
  const sent = await pair.settles('publish()', isResolved(pair.subscriber.publish(channel, '2')));
  assert(!sent, 'publish() resolved after close()');
  const subscribed = await pair.settles('subscribe()', isResolved(pair.subscriber.subscribe(channel)));
  assert(!subscribed, 'subscribe() resolved after close()');
}

const isResolved = (promise: Promise<unknown>): Promise<boolean> =>
  promise.then(
    () => true,
    () => false,
  );
