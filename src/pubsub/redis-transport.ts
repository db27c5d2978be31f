import { setTimeout as delay } from 'node:timers/promises';
import type {
  EventLink,
  HistorySettings,
  RedisTransportOptions,
  StoredMessage,
  TopicStats,
  TransportHistory,
  TransportListener,
} from '../../types/pubsub.ts';
import type { RedisSource } from '../../types/redis.ts';
import {
  delay as duration,
  flag,
  optionError,
  type Rules,
  resolveOptions,
  rule,
  wrongArgument,
} from '../options/rules.ts';
import { REDIS_OPTIONS } from '../options/scopes.ts';
import { isString } from '../options/values.ts';
import { isClusterSource, isRedis, isReplyError, type RedisCommand, redisRule } from '../redis/clients.ts';
import { RedisScript } from '../redis/commands.ts';
import { createLine, createMessageLine } from '../redis/connect.ts';
import { type ConnectionTimeouts, isRefusal, RedisConnection } from '../redis/connection.ts';
import { createStart, IDLE_MILLISECONDS, PAGE_BYTES } from './history.ts';
import type { PresenceStore } from './presence-store.ts';
import { redisPresence, writeScript } from './redis-presence.ts';
import { type Confirmation, createConfirmation, type Engine, refusal } from './transport.ts';

interface Connections {
  readonly publisher: RedisConnection;
  readonly subscriber: RedisConnection;
}

interface RedisSettings extends ConnectionTimeouts {
  readonly prefix: string;
  /** Whether a message stays on the node of its channel. */
  readonly sharded: boolean;
}

const RULES: Rules<RedisSettings> = {
  prefix: rule('espalier:', isString, 'a string'),
  sharded: flag(false),
  heartbeat: duration(5000),
  commandTimeout: duration(5000),
};

function resolveRedisOptions(redis: RedisSource, options: RedisTransportOptions | undefined): RedisSettings {
  if (!isRedis(redis)) throw wrongArgument(REDIS_OPTIONS, 'redis', redis, redisRule.accepted);
  const settings = resolveOptions<RedisSettings>(REDIS_OPTIONS, options, RULES);
  if (settings.sharded && !isClusterSource(redis))
    throw optionError(
      REDIS_OPTIONS,
      'option "sharded" needs a cluster: pass a cluster of ioredis, iovalkey or "redis", or remove it',
    );
  return settings;
}

/** Carries messages between processes, over the two connections that Redis pub/sub needs. */
export class RedisTransport implements Engine {
  readonly name = 'Redis';
  history: TransportHistory | undefined;

  readonly #redis: RedisSource;
  readonly #settings: RedisSettings;
  /** Stores and publishes an event. */
  #publishScript: RedisScript | undefined;
  #limits: HistorySettings | undefined;
  readonly #channels = new Map<string, RedisChannel>();
  #events!: TransportListener;
  #connections!: Promise<Connections>;
  #subscriber: RedisConnection | undefined;
  /** The reason why the transport will never connect. */
  #failure: Error | undefined;
  #lastPublish: Promise<unknown> | undefined;
  #wasReady = false;
  #lost = false;

  constructor(redis: RedisSource, options: RedisTransportOptions | undefined) {
    this.#redis = redis;
    this.#settings = resolveRedisOptions(redis, options);
  }

  get prefix(): string {
    return this.#settings.prefix;
  }

  get heartbeat(): number {
    return this.#settings.heartbeat;
  }

  get commandTimeout(): number {
    return this.#settings.commandTimeout;
  }

  get presence(): PresenceStore {
    const { sharded } = this.#settings;
    const limits = this.#limits;
    const kept = IDLE_MILLISECONDS + (limits?.ttl ?? 0);
    const script = new RedisScript(writeScript(publishing(limits, sharded, 'ARGV[1]'), kept));
    return redisPresence(
      keysOf,
      async (inputs) => this.#run(await this.#publisher(), script, inputs),
      (command) => this.#read(command),
    );
  }

  open(listener: TransportListener, limits?: HistorySettings): void {
    this.#events = listener;
    this.#limits = limits;
    if (limits !== undefined) {
      this.#publishScript = new RedisScript(publishing(limits, this.#settings.sharded, 'ARGV[1]'));
      this.history = historyIn(limits, (command) => this.#read(command));
    }
    this.#connections = this.#connect();
    this.#connections.catch((error: Error) => {
      this.#failure = error;
      listener.error(error);
      this.#refuse(error);
    });
  }

  async publish(channel: string, payload: string): Promise<void> {
    const sent = this.#publish(channel, payload);
    this.#lastPublish = sent;
    await sent;
  }

  async #publish(channel: string, payload: string): Promise<void> {
    const publisher = await this.#publisher();
    const script = this.#publishScript;
    if (script === undefined) {
      const message = { name: 'spublish', keys: [shardOf(channel)], args: [payload] };
      const { sharded } = this.#settings;
      await publisher.send(sharded ? message : { name: 'publish', args: [channel, payload], route: channel });
      return;
    }
    await this.#run(publisher, script, { keys: keysOf(channel), args: [payload, channel, createStart()] });
  }

  /** The nodes of a cluster change without a new connection, so they get the text of a script each time. */
  #run(
    publisher: RedisConnection,
    script: RedisScript,
    inputs: Pick<RedisCommand, 'keys' | 'args'>,
  ): Promise<unknown> {
    if (!publisher.line.isCluster) return script.send(publisher, inputs);
    return publisher.send({ name: 'eval', script: script.text, ...inputs });
  }

  async subscribe(name: string): Promise<void> {
    const isVerified = this.#channels.get(name)?.isConfirmed === true;
    this.#addChannel(name);
    for (let channel = this.#channels.get(name); channel !== undefined; channel = this.#channels.get(name)) {
      await channel.confirmed;
      // The connection that confirmed the subscription may be lost without a close event yet.
      if (!isVerified || (await this.#subscriber?.replies())) return;
      if (this.#failure !== undefined) break;
      await new Promise(setImmediate);
    }
    if (this.#failure !== undefined) throw this.#failure;
  }

  #command(name: 'subscribe' | 'unsubscribe', channel: string): RedisCommand {
    if (!this.#settings.sharded) return { name, args: [channel] };
    return { name: `s${name}`, keys: [shardOf(channel)] };
  }

  #addChannel(name: string): void {
    if (this.#channels.has(name)) return;
    const channel = createRedisChannel();
    this.#channels.set(name, channel);
    if (this.#failure !== undefined) this.#refuse(this.#failure, name);
    else if (this.#subscriber?.isReady) void this.#confirm(this.#subscriber, name, channel);
  }

  unsubscribe(name: string): void {
    this.#channels.get(name)?.resolve();
    this.#channels.delete(name);
    if (this.#subscriber?.isReady !== true) return;
    // After a lost connection there is nothing to unsubscribe from.
    this.#subscriber.send(this.#command('unsubscribe', name)).catch(() => undefined);
  }

  async close(): Promise<void> {
    this.#failure = new Error('The pubsub was closed before Redis confirmed the subscription');
    for (const channel of this.#channels.values()) channel.reject(this.#failure);
    this.#channels.clear();
    // Redis replies in order, so earlier publishes have settled too.
    await Promise.allSettled([this.#lastPublish]);
    const connections = await this.#connections.catch(() => undefined);
    await Promise.all([connections?.publisher.close(), connections?.subscriber.close()]);
  }

  async #publisher(): Promise<RedisConnection> {
    const { publisher } = await this.#connections;
    await publisher.firstAttempt;
    return publisher;
  }

  async #read(command: RedisCommand): Promise<unknown> {
    try {
      return await (await this.#publisher()).send(command);
    } catch (error) {
      if (this.#failure === undefined && !isRefusal(error)) throw error;
      throw refusal('Cannot read the history', error as Error);
    }
  }

  async #connect(): Promise<Connections> {
    const { error } = this.#events;
    const timeouts = this.#settings;
    const target = { redis: this.#redis, ...timeouts, owner: 'createPubSub' };
    const commands = await createLine(target);
    const { sharded } = timeouts;
    const messages = await createMessageLine(target, commands, {
      isSharded: sharded,
      onMessage: (name, message) =>
        this.#receive(sharded ? channelOf(name.slice(commands.keyPrefix.length)) : name, message),
    });
    const publisher = new RedisConnection(commands, timeouts, {
      ready: () => {
        if (this.#publishScript === undefined || commands.isCluster) return;
        const args = ['LOAD', this.#publishScript.text];
        // Redis has an error for a script that does not fit; the calls have it too.
        commands.send({ name: 'script', args }).catch(() => undefined);
      },
      closed() {},
      error,
    });
    const subscriber = new RedisConnection(messages, timeouts, {
      ready: () => void this.#resubscribe(subscriber),
      closed: () => this.#disconnected(),
      error: (reason) => {
        error(reason);
        // Redis will not accept a refused password later; other errors may be temporary.
        if (isRefusal(reason)) this.#refuse(reason);
      },
    });
    this.#subscriber = subscriber;
    return { publisher, subscriber };
  }

  #receive(name: string, message: string): void {
    // Messages were missed before this one, so every stream is about to end.
    if (this.#lost) return;
    // The message belongs to a subscription that is being cancelled, and the messages until the next one are missing.
    if (this.#channels.get(name)?.isConfirmed !== true) return;
    const { link, text } = splitMessage(message);
    this.#events.message(name, text, link);
  }

  #disconnected(): void {
    const wasLost = this.#lost;
    this.#lost ||= this.#wasReady;
    for (const [name, { isConfirmed }] of this.#channels) {
      if (!isConfirmed) continue;
      this.#lost = true;
      this.#channels.set(name, createRedisChannel());
    }
    if (this.#lost && !wasLost) this.#events.lost();
  }

  /** Subscribes to all channels again. ioredis has an option for this, but then does not handle rejections. */
  async #resubscribe(subscriber: RedisConnection): Promise<void> {
    const confirmations = [...this.#channels].map(([name, channel]) =>
      this.#confirm(subscriber, name, channel),
    );
    const replies = subscriber.replies();
    await Promise.all(confirmations);
    if (!(await replies)) return;
    this.#wasReady = true;
    if (!this.#lost) return;
    this.#lost = false;
    this.#events.gap();
  }

  /**
   * Subscribes to a channel, again after temporary errors, such as BUSY while Redis runs a slow script. After a lost
   * connection the next one does.
   */
  async #confirm(subscriber: RedisConnection, name: string, channel: RedisChannel): Promise<void> {
    const isCurrent = (): boolean => this.#channels.get(name) === channel;
    for (let isReported = false; isCurrent() && !channel.isConfirmed; isReported = true) {
      try {
        await subscriber.send(this.#command('subscribe', name));
        channel.isConfirmed = true;
        channel.resolve();
        return;
      } catch (error) {
        if (!isReplyError(error)) return;
        if (isRefusal(error)) {
          if (isCurrent()) this.#refuse(error, name);
          return;
        }
        if (!isReported) this.#events.error(error);
      }
      await delay(RETRY_MILLISECONDS, undefined, { ref: false });
    }
  }

  /** Ends the streams of one channel, or of all channels. */
  #refuse(cause: Error, channel?: string): void {
    for (const name of channel === undefined ? [...this.#channels.keys()] : [channel]) {
      const error = refusal(`Cannot subscribe to the Redis channel "${name}"`, cause);
      this.#channels.get(name)?.reject(error);
      this.#channels.delete(name);
      this.#events.refused(error, name);
    }
  }
}

/** `isConfirmed`: whether Redis has confirmed the subscription on the current connection. */
type RedisChannel = Confirmation & { isConfirmed: boolean };

const createRedisChannel = (): RedisChannel => ({ ...createConfirmation(), isConfirmed: false });

/** Milliseconds after which a subscription that failed for a temporary reason is sent again. */
const RETRY_MILLISECONDS = 100;

/** A channel has a stream with its events, and a key with the id of the newest one, which is kept longer. */
const keysOf = (channel: string): [string, string] => [`{${channel}}:events`, `{${channel}}:newest`];

/** The name of a sharded channel is the first key, so that a script may use both. */
const shardOf = (channel: string): string => keysOf(channel)[0];
const channelOf = (shard: string): string => shard.slice(1, -'}:events'.length);

/** The first character of messages with ids. No JSON text begins with it. */
const MARK = '@';

/** Milliseconds between two renewals of the time to live, at most. */
const RENEWAL = 1000;

/**
 * Creates the script that publishes a payload, an expression of Lua. With a history it is atomic, so that the stream has the
 * events in the order of the messages. Once per second it removes old events and renews the times to live: an id begins
 * with the milliseconds since 1970. The limits are part of the text, because each argument takes time; as strings, which
 * Redis does not have to convert. ARGV[2]: the channel, ARGV[3]: the id of its start if it has none.
 */
function publishing(history: HistorySettings | undefined, sharded: boolean, payload: string): string {
  const send = sharded ? "redis.call('SPUBLISH', KEYS[1]" : "redis.call('PUBLISH', ARGV[2]";
  if (history === undefined) return `${send}, ${payload})`;
  const { length, ttl } = history;
  const lifetime = ttl + RENEWAL;
  return `
local previous = redis.call('GET', KEYS[2]) or ARGV[3]
local id = redis.call('XADD', KEYS[1], 'MAXLEN', '~', '${length}', '*', 'p', previous, 'e', ${payload})
if string.sub(id, 1, 10) == string.sub(previous, 1, 10) then
  redis.call('SET', KEYS[2], id, 'KEEPTTL')
else
  redis.call('XTRIM', KEYS[1], 'MINID', '~', string.format('%.0f', math.max(0, string.match(id, '^%d+') - ${ttl})))
  redis.call('PEXPIRE', KEYS[1], '${lifetime}')
  redis.call('SET', KEYS[2], id, 'PX', '${lifetime + IDLE_MILLISECONDS}')
end
${send}, '${MARK}' .. id .. ' ' .. previous .. ' ' .. ${payload})
`;
}

/** Events that Redis reads at a time. */
const STEP = 16;
/** The bytes of a page, unless its first event has more: a step of large events is cut. */
const MAX_PAGE_BYTES = 4 * PAGE_BYTES;

// ARGV: the id, the maximum number of events.
const READ = `
local entries, bytes, after = {}, 0, ARGV[1]
repeat
  local count = math.min(${STEP}, ARGV[2] - #entries)
  local step = redis.call('XRANGE', KEYS[1], '(' .. after, '+', 'COUNT', count)
  for _, entry in ipairs(step) do
    bytes = bytes + #entry[2][4]
    if #entries > 0 and bytes > ${MAX_PAGE_BYTES} then break end
    entries[#entries + 1] = entry
    after = entry[1]
  end
until #step < count or #entries >= tonumber(ARGV[2]) or bytes > ${PAGE_BYTES}
return {redis.call('GET', KEYS[2]) or '', entries}
`;

/** ARGV: the id of the start. Returns the newest id. It is kept as long as that of an event. */
const begin = ({ ttl }: HistorySettings): string => `
local newest = redis.call('GET', KEYS[2])
if not newest then
  newest = ARGV[1]
  redis.call('SET', KEYS[2], newest, 'PX', '${ttl + RENEWAL + IDLE_MILLISECONDS}')
end
return newest
`;

/** An id of a stream. Cursors may come from clients. */
const ID = /^\d{1,20}-\d{1,20}$/;

/** [id, [name, value, ...]], as XRANGE returns it. */
type Entry = [id: string, fields: [string, string, string, string]];

/** The history of channels in Redis Streams. */
function historyIn(
  limits: HistorySettings,
  send: (command: RedisCommand) => Promise<unknown>,
): TransportHistory {
  const script = begin(limits);
  return {
    async newest(channel, start) {
      const keys = keysOf(channel);
      const id = await (start === undefined
        ? send({ name: 'get', keys: [keys[1]] })
        : send({ name: 'eval', script, keys, args: [start] }));
      return isString(id) ? id : undefined;
    },

    async read(channel, after, limit): Promise<readonly StoredMessage[] | 'missed'> {
      if (!ID.test(after)) return 'missed';
      const command = { name: 'eval', script: READ, keys: keysOf(channel), args: [after, limit] };
      const [newest, entries] = (await send(command)) as [string, Entry[]];
      const [first] = entries;
      if (first === undefined) return newest === after ? [] : 'missed';
      const [, [, previous]] = first;
      return previous === after ? entries.map(([id, [, , , payload]]) => ({ id, payload })) : 'missed';
    },

    async extent(channel): Promise<TopicStats> {
      const keys = [keysOf(channel)[0]];
      const [length, entries] = await Promise.all([
        send({ name: 'xlen', keys }),
        send({ name: 'xrange', keys, args: ['-', '+', 'COUNT', 1] }),
      ]);
      const [oldest] = entries as Entry[];
      return { length: Number(length), oldest: oldest && Number(oldest[0].split('-')[0]) };
    },
  };
}

/** Splits a message into the ids, if it has them, and the text of the payload. */
function splitMessage(message: string): { readonly link?: EventLink; readonly text: string } {
  if (!message.startsWith(MARK)) return { text: message };
  const first = message.indexOf(' ');
  const second = message.indexOf(' ', first + 1);
  const link = { id: message.slice(1, first), previous: message.slice(first + 1, second) };
  return { link, text: message.slice(second + 1) };
}
