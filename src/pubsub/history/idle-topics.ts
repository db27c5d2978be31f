import { setTimeout as delay } from 'node:timers/promises';
import type { Topic } from '../streams/topic.ts';

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
