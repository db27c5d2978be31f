import { setTimeout as delay } from 'node:timers/promises';
import type {
  EventLink,
  EventTransport,
  HistorySettings,
  PublishOptions,
  StoredMessage,
  TransportHistory,
  TransportListener,
} from '../../types/pubsub.ts';
import {
  createStart,
  type HistoryStore,
  type MemoryHistory,
  PAGE_LENGTH,
  type Page,
  type StoredEvent,
} from './history.ts';
import { LocalPresence, type PresenceStore } from './presence-store.ts';

/** Carries messages between publishers and the subscribers of this process. */
export interface Transport {
  /** The stored events; undefined without the option `history`. */
  readonly history: HistoryStore | undefined;
  /** Who is there; undefined if the engine cannot say it. */
  readonly presence: PresenceStore | undefined;
  /** Whether messages of the subscribed channels arrive. */
  readonly isConnected: boolean;
  /** Resolves when the message was delivered or, with Redis, received by Redis. */
  publish(channel: string, payload: unknown, options: PublishOptions | undefined): Promise<void>;
  /** Called for the first subscriber of a channel. */
  subscribe(channel: string): void;
  /** Called after the last subscriber of a channel has unsubscribed. */
  unsubscribe(channel: string): void;
  /** Resolves when messages of the channel arrive. */
  ready(channel: string): Promise<void>;
  close(): Promise<void>;
}

/** What the transports of this package have in addition. */
export interface Engine extends EventTransport {
  /** Who is there. */
  readonly presence?: PresenceStore;
  /** Precedes the topic in the name of its channel. */
  readonly prefix?: string;
  /** Milliseconds between two checks for dropped messages. */
  readonly heartbeat?: number;
  /** Milliseconds in which the server must reply. */
  readonly commandTimeout?: number;
}

/** The command timeouts without a connection after which streams end, so that clients learn that events may be missing. */
const OUTAGE = 12;
/** Milliseconds, for transports of the application. */
const COMMAND_TIMEOUT = 5000;

/** Callbacks of a transport. */
export interface TransportEvents {
  /** A message has arrived. `size` returns its length as JSON. A message that is in the history has a `link`. */
  message(channel: string, payload: unknown, size: () => number, link?: EventLink): void;
  /** Messages of the channel arrive from now on. */
  subscribed(channel: string): void;
  /** Messages of the channel, or of all channels, may have been lost. */
  gap(channel?: string): void;
  /** Messages of these channels have not arrived for a long time, and do not arrive yet. */
  outage(channels: readonly string[], seconds: number): void;
  /** Subscriptions to the channel, or to every channel, are refused. */
  refused(error: Error, channel?: string): void;
  error(error: Error): void;
}

/**
 * Returns the channel of a topic. It has U+FFFD for half of a surrogate pair: Redis returns the name of a channel
 * like this, because it was sent as UTF-8.
 */
export const channelOf = (prefix: string, topic: string): string =>
  ((prefix + topic) as string & { toWellFormed(): string }).toWellFormed();

/** Delivers messages within this process. */
export function createLocalTransport(events: TransportEvents, history?: MemoryHistory): Transport {
  const done = (): Promise<void> => Promise.resolve();
  const publish: Transport['publish'] = (channel, payload, options) => {
    if (options?.client !== undefined) return Promise.reject(clientRefused());
    let known: number | undefined;
    const size = (): number => {
      known ??= jsonLength(payload);
      return known;
    };
    events.message(channel, payload, size, history?.append(channel, payload, size));
    return done();
  };
  return {
    history,
    isConnected: true,
    publish,
    presence: new LocalPresence(publish),
    subscribe: events.subscribed,
    unsubscribe() {},
    ready: done,
    close() {
      history?.close();
      return done();
    },
  };
}

/** The assumed length of payloads that JSON cannot express. */
const UNKNOWN_LENGTH = 1024;

function jsonLength(payload: unknown): number {
  try {
    return JSON.stringify(payload)?.length ?? 0;
  } catch {
    return UNKNOWN_LENGTH;
  }
}

const clientRefused = (): Error =>
  Object.assign(
    new TypeError(
      'publish: the option "client" needs a transport with transactions, such as postgres of espalier/postgres',
    ),
    { code: 'ERR_OPTION' },
  );

interface Subscription {
  isConfirmed: boolean;
  readonly since: number;
}

/** Carries messages as JSON over an engine that other processes share. */
export class SharedTransport implements Transport {
  readonly history: HistoryStore | undefined;
  readonly #engine: Engine;
  readonly #events: TransportEvents;
  /** Milliseconds. */
  readonly #maxOutage: number;
  readonly #channels = new Map<string, Subscription>();
  #isLost = false;
  #isClosed = false;
  #outage: NodeJS.Timeout | undefined;

  constructor(engine: Engine, events: TransportEvents, history: HistorySettings | undefined) {
    this.#engine = engine;
    this.#events = events;
    this.#maxOutage = OUTAGE * (engine.commandTimeout ?? COMMAND_TIMEOUT);
    const listener: TransportListener = {
      message: (channel, text, link) => this.#receive(channel, text, link),
      gap: (channel) => {
        if (channel === undefined) this.#isLost = false;
        if (!this.#isClosed) events.gap(channel);
      },
      lost: () => {
        this.#isLost = true;
        this.#watchOutage();
      },
      refused: (error, channel) => {
        if (channel === undefined) this.#channels.clear();
        else this.#channels.delete(channel);
        if (!this.#isClosed) events.refused(error, channel);
      },
      error: events.error,
    };
    engine.open(listener, history);
    this.history =
      engine.history && new SharedHistory(engine.history, { isClosed: () => this.#isClosed, ...events });
  }

  get isConnected(): boolean {
    return !this.#isLost;
  }

  get presence(): PresenceStore | undefined {
    return this.#engine.presence;
  }

  async publish(channel: string, payload: unknown, options: PublishOptions | undefined): Promise<void> {
    const { client } = options ?? {};
    const text = JSON.stringify(payload) ?? '';
    if (client === undefined) return this.#engine.publish(channel, text);
    if (this.#engine.acceptsClient !== true) throw clientRefused();
    return this.#engine.publish(channel, text, { client });
  }

  subscribe(channel: string): void {
    this.#confirm(channel).catch(() => undefined);
  }

  unsubscribe(channel: string): void {
    if (!this.#channels.delete(channel)) return;
    try {
      this.#engine.unsubscribe(channel);
    } catch (error) {
      this.#events.error(error as Error);
    }
  }

  async ready(channel: string): Promise<void> {
    while (!this.#isClosed) {
      await this.#confirm(channel);
      // The last stream may have ended meanwhile.
      if (this.#channels.get(channel)?.isConfirmed === true) return;
    }
    throw new Error('The pubsub was closed');
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#outage);
    await this.#engine.close();
  }

  /** Subscribes to a channel, or verifies a subscription. */
  async #confirm(channel: string): Promise<void> {
    const subscription = this.#channels.get(channel) ?? { isConfirmed: false, since: performance.now() };
    this.#channels.set(channel, subscription);
    if (!subscription.isConfirmed) this.#watchOutage();
    try {
      await this.#engine.subscribe(channel);
    } catch (error) {
      // An engine that calls `refused` has removed the channel.
      if (this.#channels.get(channel) === subscription && !this.#isClosed) {
        this.#channels.delete(channel);
        this.#events.refused(error as Error, channel);
      }
      throw error;
    }
    if (subscription.isConfirmed || this.#channels.get(channel) !== subscription) return;
    subscription.isConfirmed = true;
    this.#events.subscribed(channel);
  }

  #receive(channel: string, text: string, link: EventLink | undefined): void {
    let payload: unknown;
    try {
      payload = parsePayload(text);
    } catch (cause) {
      const { name } = this.#engine;
      const kind = name === undefined ? 'channel' : `${name} channel`;
      this.#events.error(new Error(`A message on the ${kind} "${channel}" is not JSON`, { cause }));
      return;
    }
    this.#events.message(channel, payload, () => text.length, link);
  }

  /** Reports channels without messages after each period in which the connection does not come back. */
  #watchOutage(): void {
    if (this.#outage !== undefined || this.#isClosed) return;
    this.#outage = setTimeout(() => {
      this.#outage = undefined;
      const waiting = [...this.#channels].filter(([, { isConfirmed }]) => this.#isLost || !isConfirmed);
      if (waiting.length === 0 && !this.#isLost) return;
      const latest = performance.now() - this.#maxOutage;
      const isOver = ({ since }: Subscription): boolean => this.#isLost || since <= latest;
      this.#watchOutage();
      const channels = waiting.filter(([, each]) => isOver(each)).map(([channel]) => channel);
      this.#events.outage(channels, Math.round(this.#maxOutage / 1000));
    }, this.#maxOutage).unref();
  }
}

/** Parses the text of a payload. The text of `undefined` is empty. */
function parsePayload(text: string): unknown {
  return text === '' ? null : JSON.parse(text);
}

/** The code of errors that a repeated read would have again. */
const REFUSED = 'ERR_EVENTS_REFUSED';
const isRefused = (error: unknown): boolean => (error as { code?: unknown }).code === REFUSED;

const RETRY_MILLISECONDS = 100;
const MAX_RETRY_MILLISECONDS = 1000;

/** The history of an engine. Reads wait for a lost connection. */
class SharedHistory implements HistoryStore {
  readonly extent: HistoryStore['extent'];
  readonly #engine: TransportHistory;
  readonly #owner: { isClosed(): boolean; error(error: Error): void };
  readonly #pages = new PageCache();
  /** The last reported refusal of `peek`. */
  #refusal = '';

  constructor(engine: TransportHistory, owner: { isClosed(): boolean; error(error: Error): void }) {
    this.#engine = engine;
    this.#owner = owner;
    this.extent = engine.extent?.bind(engine);
  }

  async newest(channel: string): Promise<string> {
    const newest = await this.#repeat(() => this.#engine.newest(channel, createStart()));
    if (newest !== undefined) return newest;
    throw refusal(
      'Cannot begin a stream',
      new Error('newest() of the transport returned no id for a channel without events'),
    );
  }

  /** Reports only refusals, once: the connection reports its errors itself. */
  async peek(channel: string): Promise<string | undefined> {
    try {
      return await this.#engine.newest(channel);
    } catch (error) {
      if (!isRefused(error) || this.#owner.isClosed()) return undefined;
      const cause = ((error as Error).cause ?? error) as Error;
      const { message } = cause;
      if (message === this.#refusal) return undefined;
      this.#refusal = message;
      this.#owner.error(new Error(`Cannot check for dropped messages: ${message}`, { cause }));
      return undefined;
    }
  }

  async read(channel: string, after: string): Promise<Page> {
    const messages = await this.#repeat(() => this.#engine.read(channel, after, PAGE_LENGTH));
    return messages === 'missed' ? undefined : messages.map(storedEvent);
  }

  page(channel: string, after: string): Promise<Page> {
    return this.#pages.get(`${after} ${channel}`, () => this.read(channel, after));
  }

  async #repeat<T>(read: () => Promise<T>): Promise<T> {
    for (let wait = RETRY_MILLISECONDS; ; wait = Math.min(wait * 2, MAX_RETRY_MILLISECONDS)) {
      try {
        return await read();
      } catch (error) {
        if (this.#owner.isClosed() || isRefused(error)) throw error;
        await delay(wait, undefined, { ref: false });
      }
    }
  }
}

const LIFETIME_MILLISECONDS = 1000;
/** The bytes of all pages of a pubsub. */
const MAX_BYTES = 8 * 1024 * 1024;

/**
 * Shares reads of the history. After a deployment, many clients continue after the same event within a short
 * time. The events after an id never change, so a page stays correct.
 */
class PageCache {
  readonly #pages = new Map<string, { readonly page: Promise<Page>; bytes: number }>();
  #bytes = 0;

  get(key: string, load: () => Promise<Page>): Promise<Page> {
    const cached = this.#pages.get(key);
    if (cached !== undefined) return cached.page;
    const entry = { page: load(), bytes: 0 };
    this.#pages.set(key, entry);
    const remove = (): void => {
      if (this.#pages.get(key) === entry) this.#delete(key);
    };
    entry.page.then((events) => {
      // An empty page is outdated with the next event.
      if (events === undefined || events.length === 0) return remove();
      entry.bytes = events.reduce((sum, { size }) => sum + size(), 0);
      this.#bytes += entry.bytes;
      for (const [oldest, { bytes }] of this.#pages)
        if (bytes > 0 && this.#bytes > MAX_BYTES) this.#delete(oldest);
      setTimeout(remove, LIFETIME_MILLISECONDS).unref();
    }, remove);
    return entry.page;
  }

  #delete(key: string): void {
    this.#bytes -= this.#pages.get(key)?.bytes ?? 0;
    this.#pages.delete(key);
  }
}

function storedEvent({ id, payload }: StoredMessage): StoredEvent {
  return { id, payload: parsePayload(payload), size: () => payload.length };
}

/** Creates the error for the streams of a channel, or for a read, that an engine refuses. */
export function refusal(action: string, cause: Error): Error {
  return Object.assign(new Error(`${action}: ${cause.message}`, { cause }), { code: REFUSED });
}

/** A subscription that an engine has to confirm. */
export interface Confirmation {
  readonly confirmed: Promise<void>;
  resolve(): void;
  reject(error: Error): void;
}

export function createConfirmation(): Confirmation {
  let resolve = (): void => undefined;
  let reject = (_error: Error): void => undefined;
  const confirmed = new Promise<void>((...functions) => {
    [resolve, reject] = functions;
  });
  // The channel may have no caller who waits.
  confirmed.catch(() => undefined);
  return { confirmed, resolve, reject };
}
