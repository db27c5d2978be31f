import { setTimeout as delay } from 'node:timers/promises';
import type { RedisClient } from '../../types/pubsub.ts';
import { connectClients } from '../redis/connect.ts';
import {
  type ConnectionTimeouts,
  isRefusal,
  isReplyError,
  type RedisCommands,
  RedisConnection,
} from '../redis/connection.ts';
import type { HistoryLimits } from './history.ts';
import { payloadOf, RedisHistory, splitMessage } from './redis-history.ts';
import type { Transport, TransportEvents } from './transport.ts';

interface Connections {
  readonly publisher: RedisConnection;
  readonly subscriber: RedisConnection;
}

interface RedisSettings extends ConnectionTimeouts {
  readonly history: HistoryLimits | undefined;
}

/** Carries messages between processes, over the two connections that Redis pub/sub needs. */
export class RedisTransport implements Transport {
  readonly history: RedisHistory | undefined;

  readonly #events: TransportEvents;
  readonly #channels = new Map<string, RedisChannel>();
  readonly #connections: Promise<Connections>;
  #subscriber: RedisConnection | undefined;
  /** The reason why the transport will never connect. */
  #failure: Error | undefined;
  #lastPublish: Promise<unknown> | undefined;
  #wasReady = false;
  #lost = false;

  constructor(redis: string | RedisClient, settings: RedisSettings, events: TransportEvents) {
    this.#events = events;
    this.#connections = this.#open(redis, settings);
    this.history =
      settings.history &&
      new RedisHistory(settings.history, {
        send: (command) => this.#send(command),
        isFinal: (error) => this.#failure !== undefined || isRefusal(error),
        report: events.error,
      });
    this.#connections.catch((error: Error) => {
      this.#failure = error;
      events.error(error);
      this.#refuse(error);
    });
  }

  get isConnected(): boolean {
    return !this.#lost && this.#subscriber?.isReady === true;
  }

  async publish(channel: string, payload: unknown): Promise<void> {
    const message = JSON.stringify(payload) ?? '';
    const sent =
      this.history === undefined
        ? this.#send((client) => client.publish(channel, message))
        : this.history.publish(channel, message);
    this.#lastPublish = sent;
    await sent;
  }

  subscribe(name: string): void {
    // A call of `ready` has subscribed to the channel before its first stream.
    if (this.#channels.get(name)?.isConfirmed === true) this.#events.subscribed(name);
    else this.#addChannel(name);
  }

  #addChannel(name: string): void {
    if (this.#channels.has(name)) return;
    const channel = createRedisChannel();
    this.#channels.set(name, channel);
    if (this.#failure !== undefined) this.#refuse(this.#failure, name);
    else if (this.#subscriber?.isReady) void this.#confirm(this.#subscriber, name, channel);
  }

  unsubscribe(name: string): void {
    this.#channels.delete(name);
    if (this.#subscriber?.isReady !== true) return;
    // After a lost connection there is nothing to unsubscribe from.
    this.#subscriber.send((client) => client.unsubscribe(name)).catch(() => undefined);
  }

  async ready(name: string): Promise<void> {
    for (;;) {
      if (this.#failure !== undefined) throw this.#failure;
      this.#addChannel(name);
      await this.#channels.get(name)?.confirmed;
      // The connection that confirmed the subscription may be lost without a close event yet.
      if (await this.#subscriber?.replies()) return;
      await new Promise(setImmediate);
    }
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
  async #send<T>(command: (client: RedisCommands) => Promise<T>): Promise<T> {
    const { publisher } = await this.#connections;
    await publisher.firstAttempt;
    return publisher.send(command);
  }

  async #open(redis: string | RedisClient, timeouts: ConnectionTimeouts): Promise<Connections> {
    const { error } = this.#events;
    const clients = await connectClients({ redis, ...timeouts, owner: 'createPubSub' });
    const publisher = new RedisConnection(clients.publisher, timeouts, {
      ready: () => this.history?.connected(clients.publisher),
      closed() {},
      error,
    });
    const subscriber = new RedisConnection(clients.subscriber, timeouts, {
      ready: () => void this.#resubscribe(subscriber),
      closed: () => this.#disconnected(),
      error: (reason) => {
        error(reason);
        // Redis will not accept a refused password later; other errors may be temporary.
        if (isRefusal(reason)) this.#refuse(reason);
      },
    });
    clients.subscriber.on('message', (name: string, message: string) => this.#receive(name, message));
    this.#subscriber = subscriber;
    return { publisher, subscriber };
  }

  #receive(name: string, message: string): void {
    // Messages were missed before this one, so every stream is about to end.
    if (this.#lost) return;
    // The message belongs to a subscription that is being cancelled, and the messages until the next one are missing.
    if (this.#channels.get(name)?.isConfirmed !== true) return;
    const { link, text } = splitMessage(message);
    const payload = payloadOf(name, text, this.#events.error);
    if (payload !== undefined) this.#events.message(name, payload, () => text.length, link);
  }

  #disconnected(): void {
    this.#lost ||= this.#wasReady;
    for (const [name, { isConfirmed }] of this.#channels) {
      if (!isConfirmed) continue;
      this.#lost = true;
      this.#channels.set(name, createRedisChannel());
    }
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
        await subscriber.send((client) => client.subscribe(name));
        channel.isConfirmed = true;
        channel.resolve();
        if (isCurrent()) this.#events.subscribed(name);
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
      const error = refusedSubscription(name, cause);
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

/** Creates the error for the streams of a channel that Redis refuses. */
function refusedSubscription(name: string, cause: Error): Error {
  return Object.assign(
    new Error(`Cannot subscribe to the Redis channel "${name}": ${cause.message}`, { cause }),
    {
      code: 'ERR_EVENTS_REFUSED',
    },
  );
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
