import type { EventResult, EventStream } from '../../../types/pubsub.ts';
import { DerivedStream } from '../streams/derived-stream.ts';
import type { EventQueue } from '../streams/event-queue.ts';
import { eventsNotStored } from '../streams/missed-events.ts';
import type { StoredEvent } from './store.ts';

/** The topic of a replayed stream. */
interface ReplayedTopic {
  readonly position: string | undefined;
  read(after: string): Promise<readonly StoredEvent[] | undefined>;
  cursorOf(id: string): string;
  join(queue: EventQueue<unknown>): void;
  nextMove(): Promise<void>;
}

/**
 * Creates a stream of the events after an id. It reads the history as fast as the consumer reads, until it
 * reaches the position of the topic; there it joins the live streams. The topic delivers every event after
 * its position to those.
 */
export function replay(
  topic: ReplayedTopic,
  queue: EventQueue<unknown>,
  after: string,
): EventStream<unknown> {
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

  async function readWhileOpen(): Promise<readonly StoredEvent[] | undefined> {
    try {
      return await topic.read(position);
    } catch (error) {
      if (queue.isOpen) throw error;
      return undefined;
    }
  }

  /** Reads the next events, up to the position of the topic. Joins the live streams when they reach it. */
  async function advance(): Promise<void> {
    if (topic.position === position) return join();
    const before = topic.position;
    const events = await readWhileOpen();
    if (!queue.isOpen) {
      // The queue has the reason.
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
