import type { StreamWriter } from '../http/stream/stream-writer.ts';
import type { Flushable, FlushScheduler } from '../subscriptions/flush-scheduler.ts';
import type { FlushMode } from '../subscriptions/live-operation.ts';

/** The text around the payload of a message, one character per UTF-8 byte. */
export interface Envelope {
  readonly before: string;
  readonly after: string;
  /** Whether the message may be dropped if the client is slow. */
  readonly droppable: boolean;
}

/** A message in its envelope. Events of shared subscriptions have the same body for all clients. */
interface Message {
  readonly envelope: Envelope;
  readonly body: Buffer;
}

/** Bytes that are written at a time. Written messages cannot be dropped. */
export const CHUNK_SIZE: number = 64 * 1024;
/** Larger bodies are written by reference: they would be copied for each client otherwise. */
const MAX_COPIED = 16 * 1024;

/** Joins messages to one text, one character per byte. */
export type JoinMessages = (messages: readonly Message[]) => string;

/**
 * Creates a function that keeps its last result: clients of a shared subscription have equal messages in
 * their queues.
 */
export function createJoin(): JoinMessages {
  let last: readonly Message[] = [];
  let text = '';
  return (messages) => {
    if (!areEqual(last, messages)) {
      text = '';
      for (const { envelope, body } of messages) {
        text += envelope.before + body.toString('latin1') + envelope.after;
      }
      last = messages;
    }
    return text;
  };
}

function areEqual(a: readonly Message[], b: readonly Message[]): boolean {
  if (a.length !== b.length) return false;
  for (let i = 0; i < a.length; i++) {
    const [x, y] = [a[i] as Message, b[i] as Message];
    if (x.body !== y.body || x.envelope.before !== y.envelope.before) return false;
    if (x.envelope.after !== y.envelope.after) return false;
  }
  return true;
}

/**
 * The messages of one event stream, in order. Writes once per burst, and pauses while the client does not
 * read.
 */
export class StreamQueue implements Flushable {
  readonly #scheduler: FlushScheduler;
  readonly #join: JoinMessages;
  #writer: StreamWriter | undefined;
  #messages: Message[] = [];
  #bytes = 0;
  #isScheduled = false;
  #isUrgent = false;
  #isPaused = false;
  #waiters: (() => void)[] = [];

  constructor(scheduler: FlushScheduler, join: JoinMessages) {
    this.#scheduler = scheduler;
    this.#join = join;
  }

  /** The number of bytes that the client has not read. */
  get pendingBytes(): number {
    return this.#bytes + (this.#writer?.pendingBytes ?? 0);
  }
  get isEmpty(): boolean {
    return this.#messages.length === 0;
  }
  /** True while a source waits for the client. */
  get hasWaiters(): boolean {
    return this.#waiters.length > 0;
  }
  /** The number of times that a slow client has read all bytes sent to it. */
  get drains(): number {
    return this.#writer?.drains ?? 0;
  }

  /** Writes the messages from now on. */
  open(writer: StreamWriter): void {
    this.#writer = writer;
    this.flush();
    this.#resume();
  }

  push(envelope: Envelope, body: Buffer, mode: FlushMode): void {
    this.#messages.push({ envelope, body });
    this.#bytes += lengthOf(envelope, body);
    this.#scheduler.countMessage();
    if (mode === 'soon' && !this.#isUrgent) {
      this.#isUrgent = true;
      this.#scheduler.flushSoon(this);
    } else if (mode === 'batched' && !this.#isScheduled) {
      this.#isScheduled = true;
      this.#scheduler.flushBatched(this);
    }
  }

  /** Drops the oldest droppable messages until at most `limit` bytes are queued. */
  dropOldest(limit: number): void {
    this.#messages = this.#messages.filter(({ envelope, body }) => {
      const isKept = this.#bytes <= limit || !envelope.droppable;
      if (!isKept) this.#bytes -= lengthOf(envelope, body);
      return isKept;
    });
  }

  /** Drops all messages and resumes all sources. */
  discard(): void {
    this.#messages = [];
    this.#bytes = 0;
    this.#resume();
  }

  /** Writes messages until the client is slow. */
  flush(): void {
    this.#isScheduled = false;
    this.#isUrgent = false;
    const writer = this.#writer;
    while (writer !== undefined && this.#messages.length > 0 && !writer.isSlow) {
      this.#write(writer, this.#bytes > CHUNK_SIZE ? this.#take(CHUNK_SIZE) : this.#takeAll());
    }
    if (writer?.isSlow === true) this.#pause(writer);
  }

  /** Writes all messages even if the client is slow, because the response is about to end. */
  flushAll(): void {
    if (this.#writer !== undefined && this.#messages.length > 0) this.#write(this.#writer, this.#takeAll());
    this.discard();
  }

  /** Resolves when the client has read something, or is closed; undefined if it is not slow. */
  waitForDrain(): Promise<void> | undefined {
    if (this.#bytes > CHUNK_SIZE) this.flush();
    const isSlow = this.#writer === undefined ? this.#bytes > CHUNK_SIZE : this.#writer.isSlow;
    return isSlow ? new Promise((resolve) => this.#waiters.push(resolve)) : undefined;
  }

  #takeAll(): Message[] {
    const messages = this.#messages;
    this.#messages = [];
    this.#bytes = 0;
    return messages;
  }

  /** Removes and returns the first messages, about `limit` bytes and at least one message. */
  #take(limit: number): Message[] {
    let count = 0;
    for (let bytes = 0; count < this.#messages.length && bytes < limit; count++) {
      const { envelope, body } = this.#messages[count] as Message;
      bytes += lengthOf(envelope, body);
      this.#bytes -= lengthOf(envelope, body);
    }
    return this.#messages.splice(0, count);
  }

  #write(writer: StreamWriter, messages: readonly Message[]): void {
    const [first] = messages;
    if (messages.length > 1 || first === undefined || first.body.length <= MAX_COPIED) {
      writer.write(this.#join(messages), 'latin1');
      return;
    }
    writer.write(first.envelope.before, 'latin1');
    writer.write(first.body);
    writer.write(first.envelope.after, 'latin1');
  }

  #pause(writer: StreamWriter): void {
    if (this.#isPaused) return;
    this.#isPaused = true;
    const drained = writer.waitForDrain() ?? Promise.resolve();
    drained.then(() => {
      this.#isPaused = false;
      this.flush();
      this.#resume();
    });
  }

  #resume(): void {
    for (const resume of this.#waiters.splice(0)) resume();
  }
}

const lengthOf = ({ before, after }: Envelope, body: Buffer): number =>
  before.length + body.length + after.length;
