import { randomInt } from 'node:crypto';
import type { EventLink, HistorySettings, TopicStats } from '../../types/pubsub.ts';
import { duration, positive, type Rules } from '../options/rules.ts';

export interface StoredEvent {
  readonly id: string;
  readonly payload: unknown;
  /** Returns the length of the payload as JSON. */
  readonly size: () => number;
}

/** Events that follow each other; undefined if they are not all stored. */
export type Page = readonly StoredEvent[] | undefined;

/** Stores the last events of each channel. */
export interface HistoryStore {
  /** Returns the id of the newest event of a channel, or of its start. */
  newest(channel: string): Promise<string>;
  /**
   * Reads the id of the newest event without repeating the read; undefined if none is stored or without a
   * reply. Only stores whose messages can be dropped have it.
   */
  peek?(channel: string): Promise<string | undefined>;
  /** Returns the events that follow an id, oldest first, a limited number per call. */
  read(channel: string, after: string): Promise<Page>;
  /** Like `read`, but streams that continue after the same event at about the same time share a read. */
  page(channel: string, after: string): Promise<Page>;
  readonly extent?: ((channel: string) => Promise<TopicStats>) | undefined;
}

export const HISTORY_RULES: Rules<HistorySettings> = { length: positive(1000), ttl: duration(300_000) };
/** The limits of transports that always have a history. */
export const DEFAULT_LIMITS: HistorySettings = {
  length: HISTORY_RULES.length.fallback,
  ttl: HISTORY_RULES.ttl.fallback,
};

/**
 * Creates the id of a start: the place before the first event of a channel. It is never created again. After the events
 * were lost the channel has another start, so that the cursors of the first one are recognised as unknown.
 */
export const createStart = (): string => `0-${randomInt(1, 2 ** 47)}`;

/**
 * Milliseconds after which the id of the newest event is forgotten, in addition to `ttl`: clients of an idle
 * topic can resume.
 */
export const IDLE_MILLISECONDS: number = 7 * 24 * 60 * 60 * 1000;

/** The maximum number of events that `read` returns. */
export const PAGE_LENGTH = 256;
/** The bytes of payloads after which a page ends, so that large events take no more memory than small ones. */
export const PAGE_BYTES: number = 1024 * 1024;

interface TimedEvent extends StoredEvent, EventLink {
  readonly time: number;
}

interface ChannelHistory {
  /** The part of its ids before the number. */
  readonly epoch: string;
  /** Events from index `first` on; earlier ones are removed in steps. */
  events: TimedEvent[];
  first: number;
  newest: string;
  count: number;
  time: number;
}

const SWEEP_MILLISECONDS = 60_000;
const COMPACT = 1024;

/** The history of a process without Redis. */
export class MemoryHistory implements HistoryStore {
  readonly #limits: HistorySettings;
  readonly #channels = new Map<string, ChannelHistory>();
  /** Part of each id, so that the cursors of another process are recognised as unknown. */
  readonly #process = `${Date.now()}.${randomInt(1e9)}`;
  #timer: NodeJS.Timeout | undefined;

  constructor(limits: HistorySettings) {
    this.#limits = limits;
  }

  append(name: string, payload: unknown, size: () => number): EventLink {
    const channel = this.#channels.get(name) ?? this.#create(name);
    const time = performance.now();
    const id = `${channel.epoch}-${++channel.count}`;
    const event = { id, previous: channel.newest, payload, size, time };
    channel.events.push(event);
    channel.newest = event.id;
    channel.time = time;
    this.#trim(channel, time);
    return event;
  }

  newest(name: string): Promise<string> {
    return Promise.resolve(this.newestNow(name));
  }

  newestNow(name: string): string {
    return this.#channels.get(name)?.newest ?? `${this.#epoch}-0`;
  }

  /**
   * Another one in each period of the length after which a channel is forgotten. So a channel that was forgotten does not
   * begin again with the ids that it had.
   */
  get #epoch(): string {
    return `${this.#process}.${Math.floor(performance.now() / (this.#limits.ttl + IDLE_MILLISECONDS))}`;
  }

  page(name: string, after: string): Promise<Page> {
    return this.read(name, after);
  }

  read(name: string, after: string): Promise<Page> {
    const channel = this.#channels.get(name);
    if (after === this.newestNow(name)) return Promise.resolve([]);
    if (channel === undefined) return Promise.resolve(undefined);
    this.#trim(channel, performance.now());
    const { events, first } = channel;
    // The ids of a channel are consecutive.
    const offset = Number(after.slice(after.indexOf('-') + 1));
    const index = events.length - (channel.count - offset);
    if (index < first || events[index]?.previous !== after) return Promise.resolve(undefined);
    return Promise.resolve(events.slice(index, index + PAGE_LENGTH));
  }

  extent(name: string): Promise<TopicStats> {
    const channel = this.#channels.get(name);
    if (channel === undefined) return Promise.resolve({ length: 0, oldest: undefined });
    const now = performance.now();
    this.#trim(channel, now);
    const oldest = channel.events[channel.first];
    return Promise.resolve({
      length: channel.events.length - channel.first,
      oldest: oldest && Math.round(Date.now() - (now - oldest.time)),
    });
  }

  close(): void {
    clearInterval(this.#timer);
    this.#channels.clear();
  }

  #create(name: string): ChannelHistory {
    const epoch = this.#epoch;
    const channel = { epoch, events: [], first: 0, newest: `${epoch}-0`, count: 0, time: 0 };
    this.#channels.set(name, channel);
    const period = Math.min(this.#limits.ttl, SWEEP_MILLISECONDS);
    this.#timer ??= setInterval(() => this.#sweep(), period).unref();
    return channel;
  }

  #trim(channel: ChannelHistory, now: number): void {
    const { length, ttl } = this.#limits;
    const { events } = channel;
    while (
      channel.first < events.length &&
      (events.length - channel.first > length || (events[channel.first] as TimedEvent).time < now - ttl)
    ) {
      channel.first++;
    }
    if (channel.first === events.length || channel.first >= Math.max(COMPACT, events.length / 2)) {
      channel.events = events.slice(channel.first);
      channel.first = 0;
    }
  }

  #sweep(): void {
    const now = performance.now();
    for (const [name, channel] of this.#channels) {
      this.#trim(channel, now);
      if (channel.time < now - this.#limits.ttl - IDLE_MILLISECONDS) this.#channels.delete(name);
    }
    if (this.#channels.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }
}
