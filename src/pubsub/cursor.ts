import { AsyncLocalStorage } from 'node:async_hooks';
import type { EventResult, EventStream } from '../../types/pubsub.ts';

// A cursor is a list of positions, one for each topic: `topic=id&topic=id`. The position is that of the last
// event of the topic.

const ID = /^[\w.:~-]{1,64}$/;

/** `Symbol.for` makes the storage equal in the CommonJS and the ES build. */
const STORAGE = Symbol.for('espalier.resumed');

function storage(): AsyncLocalStorage<string> {
  const shared = globalThis as { [STORAGE]?: AsyncLocalStorage<string> };
  shared[STORAGE] ??= new AsyncLocalStorage();
  return shared[STORAGE];
}

/** Creates the result of a `next()`. Events without a history have no cursor. */
export function resultOf<T>(value: T, cursor: string | undefined): EventResult<T> {
  return cursor === undefined ? { value, done: false } : { value, done: false, cursor };
}

/** Creates the function that turns the ids of a topic into cursors. */
export function cursorsOf(topic: string): (id: string) => string {
  // Through a buffer, because encodeURIComponent throws for a surrogate without its pair.
  const prefix = `${encodeURIComponent(Buffer.from(topic).toString())}=`;
  return (id) => prefix + id;
}

/** Returns the id of a topic in a cursor, or undefined if the cursor does not contain the topic. */
export function idOf(topic: string, cursor: string): string | undefined {
  return new URLSearchParams(cursor).get(topic) ?? undefined;
}

/** Whether an id has the form of ids. Cursors may come from clients. */
export const isId = (id: string): boolean => ID.test(id);

/** Joins the cursors of several streams. Undefined if one is missing, or if two have the same topic. */
export function joinCursors(cursors: readonly (string | undefined)[]): string | undefined {
  const parts = cursors.flatMap((cursor) => cursor?.split('&') ?? [undefined]);
  const topics = new Set(parts.map((part) => part?.slice(0, part.indexOf('='))));
  return topics.size < parts.length || topics.has(undefined) ? undefined : parts.join('&');
}

/** Calls a function. Streams that it creates, also after an `await`, continue after the cursor. */
export function resumeAfter<Result>(cursor: string, run: () => Result): Result {
  return storage().run(cursor, run);
}

/**
 * Returns the cursor after which the client continues, within the `subscribe` resolver of a subscription.
 * Undefined if the client starts without a cursor. Streams of `createPubSub` use it themselves; other sources
 * must begin after it, and return it as their `startCursor`.
 */
export const resumedCursor = (): string | undefined => storage().getStore();

/** Whether two cursors have the same positions, in any order. */
export function areEqualCursors(a: string, b: string): boolean {
  if (a === b || a.length !== b.length || !a.includes('&')) return a === b;
  return a.split('&').sort().join('&') === b.split('&').sort().join('&');
}

/** An iterator that may have cursors: a stream of createPubSub, one derived from it, or another source. */
export type Source<T> = AsyncIterator<T> &
  Partial<Pick<EventStream<T>, 'startCursor' | 'position' | 'started'>>;

/** Calls `return` of a source. Its errors concern no consumer: a source that throws has stopped too. */
export function returnSource(source: Pick<AsyncIterator<unknown>, 'return'> | undefined): void {
  // Sources of applications may throw synchronously, or return a value that is not a promise.
  new Promise((resolve) => resolve(source?.return?.())).catch(() => undefined);
}

/** The position up to which the events of one source have been delivered. */
export class Progress {
  readonly #source: Source<unknown>;
  /** The cursor of the last delivered event. */
  #delivered: string | undefined;
  /** The position of the source at that time, which does not include the event. */
  #before: string | undefined;

  constructor(source: Source<unknown>) {
    this.#source = source;
  }

  /** Called when an event was delivered, before the next call of `next`. */
  deliver(cursor: string | undefined): void {
    if (cursor === undefined) return;
    this.#delivered = cursor;
    this.#before = this.#source.position;
  }

  /** The cursor after the last delivered event, or after later events that a filter has left out. */
  get cursor(): string | undefined {
    const { position } = this.#source;
    if (this.#delivered === undefined) return position ?? this.#source.startCursor;
    return position === this.#before ? this.#delivered : position;
  }
}
