import { setTimeout as delay } from 'node:timers/promises';
import type { EventTransport, TransportHistory, TransportListener } from '../../types/pubsub.ts';
import type { RedisSource } from '../../types/redis.ts';
import { isReplyError, type RedisCommand } from '../redis/clients.ts';
import { type ConnectionTimeouts, isRefusal, RedisConnection, type RedisLine } from '../redis/connection.ts';
import type { HistoryLimits } from './history.ts';
import { RedisHistory, splitMessage } from './redis-history.ts';
import { refusal } from './transport.ts';

interface Connections {
  readonly publisher: RedisConnection;
  readonly subscriber: RedisConnection;
}

interface RedisSettings extends ConnectionTimeouts {
  readonly history: HistoryLimits | undefined;
}

/** Carries messages between processes, over the two connections that Redis pub/sub needs. */
export class RedisTransport implements EventTransport {
  readonly name = 'Redis';
  readonly history: TransportHistory | undefined;

  readonly #redis: RedisSource;
  readonly #settings: RedisSettings;
  readonly #history: RedisHistory | undefined;
  readonly #channels = new Map<string, RedisChannel>();
  #events!: TransportListener;
  #connections!: Promise<Connections>;
  #subscriber: RedisConnection | undefined;
  /** The reason why the transport will never connect. */
  #failure: Error | undefined;
  #lastPublish: Promise<unknown> | undefined;
  #wasReady = false;
  #lost = false;

  constructor(redis: RedisSource, settings: RedisSettings) {
    this.#redis = redis;
    this.#settings = settings;
    if (settings.history === undefined) return;
    const history = new RedisHistory(settings.history, (command) => this.#send(command));
    this.#history = history;
    const final = async <T>(read: Promise<T>): Promise<T> => {
      try {
        return await read;
      } catch (error) {
        if (this.#failure === undefined && !isRefusal(error)) throw error;
        throw refusal('Cannot read the history', error as Error);
      }
    };
    this.history = {
      read: (channel, after, limit) => final(history.read(channel, after, limit)),
      newest: (channel) => final(history.newest(channel)),
      extent: (channel) => history.extent(channel),
    };
  }

  open(listener: TransportListener): void {
    this.#events = listener;
    this.#connections = this.#connect();
    this.#connections.catch((error: Error) => {
      this.#failure = error;
      listener.error(error);
      this.#refuse(error);
    });
  }

  async publish(channel: string, payload: string): Promise<void> {
    const sent =
      this.#history === undefined
        ? this.#send(() => ({ name: 'publish', args: [channel, payload] }))
        : this.#history.publish(channel, payload);
    this.#lastPublish = sent;
    await sent;
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
    this.#subscriber.send({ name: 'unsubscribe', args: [name] }).catch(() => undefined);
  }

  async close(): Promise<void> {
    this.#failure = new Error('The pubsub was closed before Redis confirmed the subscription');
    for (const channel of this.#channels.values()) channel.reject(this.#failure);
    // Redis replies in order, so earlier publishes have settled too.
    await Promise.allSettled([this.#lastPublish]);
    const connections = await this.#connections.catch(() => undefined);
    await Promise.all([connections?.publisher.close(), connections?.subscriber.close()]);
  }

  /** Sends a command on the connection for publishing. */
  async #send(command: (line: RedisLine) => RedisCommand): Promise<unknown> {
    const { publisher } = await this.#connections;
    await publisher.firstAttempt;
    return publisher.send(command(publisher.line));
  }

  async #connect(): Promise<Connections> {
    const { error } = this.#events;
    const timeouts = this.#settings;
    const target = { redis: this.#redis, ...timeouts, owner: 'createPubSub' };
    const { createLine } = await import('../redis/connect.ts');
    const commands = await createLine(target);
    const messages = await createLine(target, {
      publisher: commands,
      onMessage: (name, message) => this.#receive(name, message),
    });
    const publisher = new RedisConnection(commands, timeouts, {
      ready: () => this.#history?.connected(commands),
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
        await subscriber.send({ name: 'subscribe', args: [name] });
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

/** A subscription that Redis has to confirm. */
interface RedisChannel {
  readonly confirmed: Promise<void>;
  resolve(): void;
  reject(error: Error): void;
  /** Whether Redis has confirmed the subscription on the current connection. */
  isConfirmed: boolean;
}

function createRedisChannel(): RedisChannel {
  const channel = { isConfirmed: false } as RedisChannel & { confirmed: Promise<void> };
  channel.confirmed = new Promise((resolve, reject) => {
    channel.resolve = resolve;
    channel.reject = reject;
  });
  // Avoids an unhandled rejection: a channel may have no caller of `ready`.
  channel.confirmed.catch(() => undefined);
  return channel;
}

/** Milliseconds after which a subscription that failed for a temporary reason is sent again. */
const RETRY_MILLISECONDS = 100;
