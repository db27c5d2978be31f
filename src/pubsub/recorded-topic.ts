import { setTimeout as delay } from 'node:timers/promises';
import type { EventLink, EventResult, EventStream } from '../../types/pubsub.ts';
import { DerivedStream } from './derived.ts';
import type { HistoryStore, Page, StoredEvent } from './history.ts';
import { type EventQueue, eventsNotStored, Topic, type TopicServices } from './topic.ts';

type Queue = EventQueue<unknown>;

/** Ids that wait for late messages. A late message without its id costs a read, which finds no event. */
const MAX_RECOVERED = 10_000;

/**
 * The streams of one topic with a history. Every event names the event before it. When that one has not
 * arrived, or after a lost connection, the topic reads the missing events from the history and then continues
 * with live events.
 */
export class RecordedTopic extends Topic {
  protected override readonly isRecorded = true;
  readonly #store: HistoryStore;
  readonly #cursor: (id: string) => string;
  /** The streams that have reached the position of the topic and get its events. */
  readonly #live = new Set<Queue>();
  /** The id of the last event that was delivered to the live streams. Undefined until the topic has started. */
  #position: string | undefined;
  /** The events that recovery has delivered and that may still arrive as messages. */
  readonly #recovered = new Set<string>();
  #recovering = false;
  #failure: Error | undefined;
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
      (error: Error) => this.close(error),
    );
  }

  override async started(): Promise<void> {
    while (this.#position === undefined && this.isUsed) await this.nextMove();
    if (this.#position === undefined && this.#failure !== undefined) throw this.#failure;
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

  override close(error?: Error): void {
    this.#failure = error;
    super.close(error);
  }

  /** Reads events for a stream that is not live. Streams with the same position share a read. */
  read(after: string): Promise<Page> {
    return this.#store.page(this.channel, after);
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
      // A later stream begins at a new position.
      this.close(error as Error);
    } finally {
      this.#recovering = false;
    }
  }
}

/**
 * Creates a stream of the events after an id. It reads the history as fast as the consumer reads, until it
 * reaches the position of the topic; there it joins the live streams. The topic delivers every event after
 * its position to those.
 */
function replay(topic: RecordedTopic, queue: Queue, after: string): EventStream<unknown> {
  let position = after;
  let isLive = false;
  let page: readonly StoredEvent[] = [];
  let index = 0;
  let taken = topic.cursorOf(after);
  let acknowledged = taken;
  let isQueueRead = false;
  queue.startCursor = taken;

  function join(): void {
    isLive = true;
    queue.startCursor = topic.cursorOf(position);
    topic.join(queue);
  }

  /** A read may wait for a lost connection longer than the stream. */
  function readWhileOpen(): Promise<Page> {
    return new Promise((resolve, reject) => {
      queue.onEnd = () => resolve(undefined);
      topic.read(position).then(resolve, reject);
    });
  }

  /** Reads the next events, up to the position of the topic. Joins the live streams when they reach it. */
  async function advance(): Promise<void> {
    if (topic.position === position) return join();
    const before = topic.position;
    const events = queue.isOpen ? await readWhileOpen() : undefined;
    if (!queue.isOpen) {
      // The queue has the reason. The consumer has all events of the last page.
      queue.startCursor = taken;
      isLive = true;
      return;
    }
    if (events === undefined) throw eventsNotStored();
    const reached = events.findIndex(({ id }) => id === topic.position);
    page = reached === -1 ? events : events.slice(0, reached + 1);
    index = 0;
    position = page.at(-1)?.id ?? position;
    if (reached !== -1) join();
    // Another process has delivered events that have not arrived here yet. The topic will reach this
    // position.
    else if (page.length === 0 && topic.position !== position && topic.position === before)
      await topic.nextMove();
  }

  const pull = async (): Promise<EventResult<unknown>> => {
    acknowledged = taken;
    for (;;) {
      const event = page[index];
      if (event !== undefined) {
        index++;
        taken = topic.cursorOf(event.id);
        return { value: event.payload, done: false, cursor: taken };
      }
      if (isLive) {
        isQueueRead = true;
        return queue.next();
      }
      await advance();
    }
  };
  const startCursor = taken;
  return new DerivedStream([queue], pull, {
    startCursor: () => startCursor,
    position: () => (isQueueRead ? queue.position : acknowledged),
  });
}

/** Steps per heartbeat, and topics per step: many topics neither block the event loop nor flood Redis. */
const STEPS = 10;
const TOPICS_PER_STEP = 100;

/** Milliseconds in which the message of a stored event must arrive, or a heartbeat if that is shorter. */
const GRACE = 500;

/** The topics of this process, and the ids that Redis has stored. */
interface StoredTopics {
  topics(): Iterable<Topic>;
  /** Whether messages arrive. After a lost connection all topics read the history. */
  isConnected(): boolean;
  /** Returns the id of the newest event of a channel; undefined without one or without a reply. */
  newest(channel: string): Promise<string | undefined>;
}

/**
 * Finds messages that Redis has dropped. The next event of the topic shows a gap. On a topic without further
 * events, only the id of the newest stored event shows it: the check reads that id once per heartbeat, for
 * topics that have received nothing since the last check.
 */
export class IdleTopics {
  readonly #stored: StoredTopics;
  readonly #grace: number;
  readonly #timer: NodeJS.Timeout;
  /** The position of each topic at its last check. */
  readonly #positions = new WeakMap<Topic, string>();
  /** The topics whose check has not ended. */
  readonly #checking = new WeakSet<Topic>();
  /** The topics that this round has not checked yet. A round takes one heartbeat, with many topics more. */
  #round: Topic[] = [];
  #step = 0;

  constructor(heartbeat: number, stored: StoredTopics) {
    this.#stored = stored;
    this.#grace = Math.min(GRACE, heartbeat);
    this.#timer = setInterval(() => this.#check(), Math.max(1, heartbeat / STEPS)).unref();
  }

  close(): void {
    clearInterval(this.#timer);
    this.#round = [];
  }

  #check(): void {
    this.#step = (this.#step + 1) % STEPS;
    if (!this.#stored.isConnected()) return;
    if (this.#step === 0 && this.#round.length === 0) this.#round = [...this.#stored.topics()];
    for (const topic of this.#round.splice(-TOPICS_PER_STEP)) {
      const { position } = topic;
      if (position === undefined || this.#checking.has(topic)) continue;
      if (this.#positions.get(topic) === position) void this.#compare(topic, position);
      else this.#positions.set(topic, position);
    }
  }

  /** Reads the history if its newest event is not the last received one, and no message arrives meanwhile. */
  async #compare(topic: Topic, position: string): Promise<void> {
    this.#checking.add(topic);
    const newest = await this.#stored.newest(topic.channel);
    // Without an id it has expired, or Redis has lost its data. The next event shows which.
    if (newest !== undefined && newest !== position) {
      await delay(this.#grace, undefined, { ref: false });
      if (topic.position === position && topic.size > 0) topic.catchUp();
    }
    this.#checking.delete(topic);
  }
}
