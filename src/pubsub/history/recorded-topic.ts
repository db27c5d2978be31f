import type { EventStream } from '../../../types/pubsub.ts';
import type { EventLink } from '../cursor.ts';
import type { EventQueue } from '../streams/event-queue.ts';
import { eventsNotStored } from '../streams/missed-events.ts';
import { Topic, type TopicServices } from '../streams/topic.ts';
import { PageCache } from './page-cache.ts';
import { replay } from './replay.ts';
import type { HistoryStore, StoredEvent } from './store.ts';

type Queue = EventQueue<unknown>;

/** Ids that wait for late messages. A late message without its id costs a read, which finds no event. */
const MAX_RECOVERED = 10_000;

/**
 * The streams of one topic with a history. Every event names the event before it. When that one has not
 * arrived, or after a lost connection, the topic reads the missing events from the history and then continues
 * with live events.
 */
export class RecordedTopic extends Topic {
  readonly #store: HistoryStore;
  readonly #pages: PageCache;
  readonly #cursor: (id: string) => string;
  /** The streams that have reached the position of the topic and get its events. */
  readonly #live = new Set<Queue>();
  /**
   * The id of the last event that was delivered to the live streams. Undefined until the topic has started.
   */
  #position: string | undefined;
  /** The events that recovery has delivered and that may still arrive as messages. */
  readonly #recovered = new Set<string>();
  #recovering = false;
  /** Whether messages were skipped because recovery reads their events. */
  #skipped = false;
  #waiting: (() => void)[] = [];

  constructor(
    channel: string,
    services: TopicServices,
    history: { readonly store: HistoryStore; readonly cursor: (id: string) => string },
  ) {
    super(channel, services);
    this.#store = history.store;
    this.#cursor = history.cursor;
    this.#pages = new PageCache((after) => history.store.read(channel, after));
  }

  override get position(): string | undefined {
    return this.#position;
  }

  /** Opens a stream of later events, or of those after an id. */
  override open(after?: string): EventStream<unknown> {
    const queue = this.addQueue();
    if (after !== undefined) return replay(this, queue, after);
    this.#live.add(queue);
    if (this.#position !== undefined) queue.startCursor = this.#cursor(this.#position);
    return queue;
  }

  /** Reads the position at which the live streams begin, unless an event arrives earlier. */
  override subscribed(): void {
    if (this.#position !== undefined) {
      this.reconnected();
      return;
    }
    this.#store.newest(this.channel).then(
      (newest) => {
        if (this.#position === undefined) this.#begin(newest);
        this.#moved();
      },
      (error: Error) => this.end(error),
    );
  }

  override async started(): Promise<void> {
    while (this.#position === undefined && this.size > 0) await this.nextMove();
  }

  override receive(payload: unknown, size: () => number, link?: EventLink): void {
    if (link === undefined) {
      // A process without the option `history` has published it.
      for (const queue of this.#live) queue.push(payload, size);
    } else if (this.#recovering) {
      this.#skipped = true;
    } else {
      if (this.#position === undefined) this.#begin(link.previous);
      if (link.previous === this.#position) {
        if (this.#recovered.size > 0) this.#recovered.clear();
        this.#deliver(link.id, payload, size);
      } else if (!this.#recovered.delete(link.id)) void this.#recover();
    }
  }

  override catchUp(): void {
    void this.#recover();
  }

  override reconnected(): void {
    this.#skipped = true;
    void this.#recover();
  }

  override end(error?: Error): void {
    super.end(error);
    this.#moved();
  }

  /** Reads events for a stream that is not live. Streams with the same position share a read. */
  read(after: string): Promise<readonly StoredEvent[] | undefined> {
    return this.#pages.read(after);
  }

  cursorOf(id: string): string {
    return this.#cursor(id);
  }

  /** Adds a stream that has reached the position of the topic. */
  join(queue: Queue): void {
    if (this.streams.has(queue)) this.#live.add(queue);
  }

  /** Resolves when the position changes or the streams end. */
  nextMove(): Promise<void> {
    return new Promise((resolve) => {
      this.#waiting.push(resolve);
    });
  }

  protected override removeQueue(queue: Queue): void {
    this.#live.delete(queue);
    super.removeQueue(queue);
  }

  #begin(position: string): void {
    this.#position = position;
    for (const queue of this.#live) queue.startCursor ??= this.#cursor(position);
  }

  #deliver(id: string, payload: unknown, size: () => number): void {
    this.#position = id;
    const cursor = this.#cursor(id);
    for (const queue of this.#live) queue.push(payload, size, cursor);
    this.#moved();
  }

  #moved(): void {
    if (this.#waiting.length === 0) return;
    for (const resolve of this.#waiting.splice(0)) resolve();
  }

  /** Delivers the events after the position from the history, until no message was skipped meanwhile. */
  async #recover(): Promise<void> {
    if (this.#recovering || this.#position === undefined) return;
    this.#recovering = true;
    try {
      for (;;) {
        this.#skipped = false;
        const events = await this.#store.read(this.channel, this.#position);
        if (events === undefined) throw eventsNotStored();
        if (this.#recovered.size > MAX_RECOVERED) this.#recovered.clear();
        for (const event of events) {
          this.#recovered.add(event.id);
          this.#deliver(event.id, event.payload, event.size);
        }
        if (events.length === 0 && !this.#skipped) return;
      }
    } catch (error) {
      this.end(error as Error);
    } finally {
      this.#recovering = false;
    }
  }
}
