import { createHash } from 'node:crypto';
import type { EventLink, StoredMessage, TopicStats, TransportHistory } from '../../types/pubsub.ts';
import { isString } from '../options/rules.ts';
import { isReplyError, type RedisCommand } from '../redis/clients.ts';
import type { RedisLine } from '../redis/connection.ts';
import { type HistoryLimits, IDLE_MILLISECONDS, START } from './history.ts';

/** A channel has a stream with its events, and a key with the id of the newest one, which is kept longer. */
const keysOf = (channel: string): [string, string] => [`{${channel}}:events`, `{${channel}}:newest`];

/** The first character of messages with ids. No JSON text begins with it. */
const MARK = '@';

/** Milliseconds between two renewals of the time to live, at most. */
const RENEWAL = 1000;

/**
 * Returns the script of a publish. It is atomic, so that the stream has the events in the order of the messages.
 * Once per second it removes old events and renews the times to live: an id begins with the milliseconds since
 * 1970. The limits are part of the text, because each argument takes time; as strings, which Redis does not have to
 * convert. The channel is in the key of its events, after the key prefix of the client.
 */
function publishScript({ length, age }: HistoryLimits, keyPrefix: string): string {
  const lifetime = age + RENEWAL;
  const start = Buffer.byteLength(keyPrefix) + 2;
  return `
local previous = redis.call('GET', KEYS[2]) or '${START}'
local id = redis.call('XADD', KEYS[1], 'MAXLEN', '~', '${length}', '*', 'p', previous, 'e', ARGV[1])
if string.sub(id, 1, 10) == string.sub(previous, 1, 10) then
  redis.call('SET', KEYS[2], id, 'KEEPTTL')
else
  redis.call('XTRIM', KEYS[1], 'MINID', '~', string.format('%.0f', math.max(0, string.match(id, '^%d+') - ${age})))
  redis.call('PEXPIRE', KEYS[1], '${lifetime}')
  redis.call('SET', KEYS[2], id, 'PX', '${lifetime + IDLE_MILLISECONDS}')
end
redis.call('PUBLISH', string.sub(KEYS[1], ${start}, -9), '${MARK}' .. id .. ' ' .. previous .. ' ' .. ARGV[1])
`;
}

/** The bytes of payloads after which a read ends, so that large events take no more memory than small ones. */
const PAGE_BYTES = 1024 * 1024;
/** Events that Redis reads at a time. */
const STEP = 16;

// ARGV: the id, the maximum number of events.
const READ = `
local entries, bytes, after = {}, 0, ARGV[1]
repeat
  local count = math.min(${STEP}, ARGV[2] - #entries)
  local step = redis.call('XRANGE', KEYS[1], '(' .. after, '+', 'COUNT', count)
  for _, entry in ipairs(step) do
    entries[#entries + 1] = entry
    bytes = bytes + #entry[2][4]
    after = entry[1]
  end
until #step < count or #entries >= tonumber(ARGV[2]) or bytes > ${PAGE_BYTES}
return {redis.call('GET', KEYS[2]) or '${START}', entries}
`;

/** An id of a stream. Cursors may come from clients. */
const ID = /^\d{1,20}-\d{1,20}$/;

/** [id, [name, value, ...]], as XRANGE returns it. */
type Entry = [id: string, fields: [string, string, string, string]];

/** The history of channels in Redis Streams. */
export class RedisHistory implements TransportHistory {
  readonly #send: Send;
  readonly #publish: RedisScript;
  /** The channel of the last publish and its keys: most publishes follow one to the same channel. */
  #lastChannel = '';
  #lastKeys = keysOf('');

  constructor(limits: HistoryLimits, send: Send) {
    this.#send = send;
    this.#publish = new RedisScript((keyPrefix) => publishScript(limits, keyPrefix));
  }

  /** Called when a connection is ready. */
  connected(line: RedisLine): void {
    this.#publish.load(line);
  }

  /** Stores and publishes an event in one command. */
  publish(channel: string, payload: string): Promise<void> {
    if (channel !== this.#lastChannel) {
      this.#lastChannel = channel;
      this.#lastKeys = keysOf(channel);
    }
    return this.#publish.run(this.#send, this.#lastKeys, payload);
  }

  async newest(channel: string): Promise<string | undefined> {
    const [, key] = keysOf(channel);
    const id = await this.#send(() => ({ name: 'get', keys: [key] }));
    return isString(id) ? id : undefined;
  }

  async read(channel: string, after: string, limit: number): Promise<readonly StoredMessage[] | 'missed'> {
    if (!ID.test(after)) return 'missed';
    const keys = keysOf(channel);
    const command = { name: 'eval', script: READ, keys, args: [after, limit] };
    const [newest, entries] = (await this.#send(() => command)) as [string, Entry[]];
    const [first] = entries;
    if (first === undefined) return newest === after ? [] : 'missed';
    const [, [, previous]] = first;
    return previous === after ? entries.map(([id, [, , , payload]]) => ({ id, payload })) : 'missed';
  }

  async extent(channel: string): Promise<TopicStats> {
    const keys = [keysOf(channel)[0]];
    const [length, entries] = await Promise.all([
      this.#send(() => ({ name: 'xlen', keys })),
      this.#send(() => ({ name: 'xrange', keys, args: ['-', '+', 'COUNT', 1] })),
    ]);
    const [oldest] = entries as Entry[];
    return { length: Number(length), oldest: oldest && Number(oldest[0].split('-')[0]) };
  }
}

/** Splits a message into the ids, if it has them, and the text of the payload. */
export function splitMessage(message: string): { readonly link?: EventLink; readonly text: string } {
  if (!message.startsWith(MARK)) return { text: message };
  const first = message.indexOf(' ');
  const second = message.indexOf(' ', first + 1);
  const link = { id: message.slice(1, first), previous: message.slice(first + 1, second) };
  return { link, text: message.slice(second + 1) };
}

/** Sends a command on the connection for publishing. */
type Send = (command: (line: RedisLine) => RedisCommand) => Promise<unknown>;

/** Returns the text of a script for the key prefix of the client. */
type ScriptText = (keyPrefix: string) => string;

/**
 * A Lua script with two keys and one argument, which Redis stores by its hash: a call sends only the hash. It is loaded
 * on each new connection before any call. The nodes of a cluster change without one, so they get the text each time.
 */
class RedisScript {
  readonly #textFor: ScriptText;
  #text: string | undefined;
  #hash = '';

  constructor(textFor: ScriptText) {
    this.#textFor = textFor;
  }

  load(line: RedisLine): void {
    if (line.isCluster) return;
    // Redis has an error for a script that does not fit; the calls have it too.
    line.send({ name: 'script', args: ['LOAD', this.#textOf(line)] }).catch(() => undefined);
  }

  async run(send: Send, keys: readonly string[], argument: string): Promise<void> {
    const inputs = { keys, args: [argument] };
    const withText = (line: RedisLine): RedisCommand => ({
      name: 'eval',
      script: this.#textOf(line),
      ...inputs,
    });
    try {
      await send((line) => {
        if (line.isCluster) return withText(line);
        this.#textOf(line);
        return { name: 'evalsha', script: this.#hash, ...inputs };
      });
    } catch (error) {
      // The scripts of the server were flushed.
      if (!isReplyError(error) || !error.message.startsWith('NOSCRIPT')) throw error;
      await send(withText);
    }
  }

  /** Creates the text when the client is known. */
  #textOf({ keyPrefix }: RedisLine): string {
    if (this.#text === undefined) {
      this.#text = this.#textFor(keyPrefix);
      this.#hash = createHash('sha1').update(this.#text).digest('hex');
    }
    return this.#text;
  }
}
