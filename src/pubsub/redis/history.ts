import { setTimeout as delay } from 'node:timers/promises';
import type { RedisCommands } from '../../redis/connection.ts';
import type { EventLink } from '../cursor.ts';
import {
  type HistoryExtent,
  type HistoryLimits,
  type HistoryStore,
  PAGE_LENGTH,
  QUIET_MILLISECONDS,
  START,
  type StoredEvent,
} from '../history/store.ts';
import { RedisScript, type Send } from './script.ts';

/** A channel has a stream with its events, and a key with the id of the newest one, which is kept longer. */
const keysOf = (channel: string): [string, string] => [`{${channel}}:events`, `{${channel}}:newest`];

/** The first character of messages with ids. No JSON text begins with it. */
const MARK = '@';

// Atomic, so that the stream has the events in the order of the messages. Once per second old events are
// removed and the keys get their time to live: an id begins with the milliseconds since 1970. ARGV: channel,
// payload, length, age, time to live of the events, time to live of the newest id.
const PUBLISH = `
local previous = redis.call('GET', KEYS[2]) or '${START}'
local id = redis.call('XADD', KEYS[1], 'MAXLEN', '~', ARGV[3], '*', 'p', previous, 'e', ARGV[2])
if string.sub(id, 1, 10) == string.sub(previous, 1, 10) then
  redis.call('SET', KEYS[2], id, 'KEEPTTL')
else
  redis.call('XTRIM', KEYS[1], 'MINID', '~', string.format('%.0f', string.match(id, '^%d+') - ARGV[4]))
  redis.call('PEXPIRE', KEYS[1], ARGV[5])
  redis.call('SET', KEYS[2], id, 'PX', ARGV[6])
end
redis.call('PUBLISH', ARGV[1], '${MARK}' .. id .. ' ' .. previous .. ' ' .. ARGV[2])
`;
/** Milliseconds between two renewals of the time to live, at most. */
const RENEWAL = 1000;

// ARGV: the id, the maximum number of events.
const READ = `
return {redis.call('GET', KEYS[2]) or '${START}', redis.call('XRANGE', KEYS[1], '(' .. ARGV[1], '+', 'COUNT', ARGV[2])}
`;

/** [id, [name, value, …]], as XRANGE returns it. */
type Entry = [id: string, fields: [string, string, string, string]];

const RETRY_MILLISECONDS = 100;

/** The history of channels in Redis Streams. */
export class RedisHistory implements HistoryStore {
  readonly #send: Send;
  readonly #limits: HistoryLimits;
  readonly #isFinal: (error: unknown) => boolean;
  readonly #publish = new RedisScript(PUBLISH);

  /** Reads are repeated after errors that are not `isFinal`. */
  constructor(send: Send, limits: HistoryLimits, isFinal: (error: unknown) => boolean) {
    this.#send = send;
    this.#limits = limits;
    this.#isFinal = isFinal;
  }

  /** Stores and publishes an event in one command. */
  async publish(channel: string, payload: string): Promise<void> {
    const { length, age } = this.#limits;
    const lifetime = age + RENEWAL;
    const args = [channel, payload, length, age, lifetime, lifetime + QUIET_MILLISECONDS];
    await this.#publish.run(this.#send, keysOf(channel), args);
  }

  async newest(channel: string): Promise<string> {
    const [, key] = keysOf(channel);
    return (await this.#retry((client) => client.get(key))) ?? START;
  }

  async read(channel: string, after: string): Promise<readonly StoredEvent[] | undefined> {
    const keys = keysOf(channel);
    const [newest, entries] = await this.#retry(
      (client) => client.eval(READ, 2, ...keys, after, PAGE_LENGTH) as Promise<[string, Entry[]]>,
    );
    if (entries.length === 0) return newest === after ? [] : undefined;
    const events = entries.map(([id, [, previous, , payload]]) => storedEvent(id, previous, payload));
    return events[0]?.previous === after ? events : undefined;
  }

  async extent(channel: string): Promise<HistoryExtent> {
    const [key] = keysOf(channel);
    const [length, [oldest]] = await Promise.all([
      this.#send((client) => client.xlen(key)),
      this.#send((client) => client.xrange(key, '-', '+', 'COUNT', 1)),
    ]);
    return { length, oldest: oldest && Number(oldest[0].split('-')[0]) };
  }

  async #retry<T>(command: (client: RedisCommands) => Promise<T>): Promise<T> {
    for (;;) {
      try {
        return await this.#send(command);
      } catch (error) {
        if (this.#isFinal(error)) throw error;
        await delay(RETRY_MILLISECONDS, undefined, { ref: false });
      }
    }
  }
}

function storedEvent(id: string, previous: string, text: string): StoredEvent {
  return { id, previous, payload: parsePayload(text), size: () => text.length };
}

/** Parses the text of a payload. The text of `undefined` is empty. */
export function parsePayload(text: string): unknown {
  return text === '' ? null : JSON.parse(text);
}

/** Splits a message into the ids, if it has them, and the text of the payload. */
export function splitMessage(message: string): { readonly link?: EventLink; readonly text: string } {
  if (!message.startsWith(MARK)) return { text: message };
  const first = message.indexOf(' ');
  const second = message.indexOf(' ', first + 1);
  const link = { id: message.slice(1, first), previous: message.slice(first + 1, second) };
  return { link, text: message.slice(second + 1) };
}
