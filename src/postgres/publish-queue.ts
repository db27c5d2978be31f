import type { PostgresSettings } from './options.ts';
import { inTime, isValueError } from './session.ts';

interface Publish {
  readonly channel: string;
  readonly payload: string;
  resolve(): void;
  reject(error: Error): void;
}

const BATCH_LENGTH = 200;
/** Characters of payloads. */
const BATCH_SIZE = 1024 * 1024;

/**
 * Publishes events in the order of the calls. Those that wait for an earlier publish become one transaction: the time of
 * a commit limits the number of transactions, not of events.
 */
export class PublishQueue {
  readonly #settings: PostgresSettings;
  readonly #statement: string;
  #waiting: Publish[] = [];
  #running: Promise<void> | undefined;

  constructor(settings: PostgresSettings, statement: string) {
    this.#settings = settings;
    this.#statement = statement;
  }

  /** Resolves when all events are published or refused. */
  get settled(): Promise<void> | undefined {
    return this.#running;
  }

  add(channel: string, payload: string): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ channel, payload, resolve, reject });
      this.#running ??= this.#run();
    });
  }

  async #run(): Promise<void> {
    while (this.#waiting.length > 0) {
      // Publishes of the same moment share the first transaction.
      await undefined;
      await this.#publish(this.#nextBatch());
    }
    this.#running = undefined;
  }

  #nextBatch(): readonly Publish[] {
    let size = 0;
    const end = this.#waiting.findIndex(({ payload }, index) => {
      size += payload.length;
      return index === BATCH_LENGTH || (index > 0 && size > BATCH_SIZE);
    });
    return this.#waiting.splice(0, end === -1 ? BATCH_LENGTH : end);
  }

  async #publish(batch: readonly Publish[]): Promise<void> {
    const { pool, commandTimeout } = this.#settings;
    // All transactions lock their channels in one order, so that they do not wait for each other.
    const sorted = [...batch].sort((a, b) => (a.channel < b.channel ? -1 : Number(a.channel > b.channel)));
    const channels = sorted.map(({ channel }) => channel);
    const payloads = sorted.map(({ payload }) => payload);
    try {
      await inTime(pool.query(this.#statement, [channels, payloads]), commandTimeout);
      for (const { resolve } of batch) resolve();
    } catch (error) {
      // Nothing was stored, and only one of the events may be at fault.
      if (batch.length > 1 && isValueError(error)) for (const each of batch) await this.#publish([each]);
      else for (const { reject } of batch) reject(error as Error);
    }
  }
}
