import type { EventLink } from '../cursor.ts';
import {
  type HistoryExtent,
  type HistoryLimits,
  type HistoryStore,
  IDLE_MILLISECONDS,
  PAGE_LENGTH,
  type StoredEvent,
} from './store.ts';

interface TimedEvent extends StoredEvent {
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
  readonly #epoch = Date.now();
  /** The id before the first event of a channel. */
  readonly #start = `${this.#epoch}-0`;
  #timer: NodeJS.Timeout | undefined;

  constructor(limits: HistoryLimits) {
    this.#limits = limits;
  }

  /** Adds an event. */
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

  extent(name: string): Promise<HistoryExtent> {
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
