import { randomInt } from 'node:crypto';
import type { EventLink, TopicStats } from '../../types/pubsub.ts';
import { duration, positive, type Rules } from '../options/rules.ts';

export interface StoredEvent {
  readonly id: string;
  readonly payload: unknown;
  /** Returns the length of the payload as JSON. */
  readonly size: () => number;
}

/** Stores the last events of each channel. */
export interface HistoryStore {
  /** Returns the id of the newest event of a channel, or `START`. */
  newest(channel: string): Promise<string>;
  /**
   * Reads the id of the newest event without repeating the read; undefined without an event or without a
   * reply. Only stores whose messages can be dropped have it.
   */
  peek?(channel: string): Promise<string | undefined>;
  /**
   * Returns the events that follow an id, oldest first, a limited number per call; undefined if they are not
   * all stored.
   */
  read(channel: string, after: string): Promise<readonly StoredEvent[] | undefined>;
  readonly extent?: ((channel: string) => Promise<TopicStats>) | undefined;
}

export interface HistoryLimits {
  readonly length: number;
  /** Milliseconds. */
  readonly age: number;
}

export const HISTORY_RULES: Rules<HistoryLimits> = { length: positive(1000), age: duration(300_000) };

/** The id before the first event of a channel. */
export const START = '0-0';

/**
 * Milliseconds after which the id of the newest event is forgotten, in addition to `age`: clients of an idle
 * topic can resume.
 */
export const IDLE_MILLISECONDS: number = 7 * 24 * 60 * 60 * 1000;

/** The maximum number of events that `read` returns. */
export const PAGE_LENGTH = 256;

interface TimedEvent extends StoredEvent, EventLink {
  readonly time: number;
}

interface ChannelHistory {
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
  readonly #limits: HistoryLimits;
  readonly #channels = new Map<string, ChannelHistory>();
  /** Part of each id, so that the cursors of another process are recognised as unknown. */
  readonly #epoch = `${Date.now()}.${randomInt(1e9)}`;
  /** The id before the first event of a channel. */
  readonly #start = `${this.#epoch}-0`;
  #timer: NodeJS.Timeout | undefined;

  constructor(limits: HistoryLimits) {
    this.#limits = limits;
  }

  append(name: string, payload: unknown, size: () => number): EventLink {
    const channel = this.#channels.get(name) ?? this.#create(name);
    const time = performance.now();
    const event = { id: `${this.#epoch}-${++channel.count}`, previous: channel.newest, payload, size, time };
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
    return this.#channels.get(name)?.newest ?? this.#start;
  }

  read(name: string, after: string): Promise<readonly StoredEvent[] | undefined> {
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
    const channel = { events: [], first: 0, newest: this.#start, count: 0, time: 0 };
    this.#channels.set(name, channel);
    const period = Math.min(this.#limits.age, SWEEP_MILLISECONDS);
    this.#timer ??= setInterval(() => this.#sweep(), period).unref();
    return channel;
  }

  #trim(channel: ChannelHistory, now: number): void {
    const { length, age } = this.#limits;
    const { events } = channel;
    while (
      channel.first < events.length &&
      (events.length - channel.first > length || (events[channel.first] as TimedEvent).time < now - age)
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
      if (channel.time < now - this.#limits.age - IDLE_MILLISECONDS) this.#channels.delete(name);
    }
    if (this.#channels.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }
}
