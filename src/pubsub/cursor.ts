import { AsyncLocalStorage } from 'node:async_hooks';
import type { EventResult } from '../../types/pubsub.ts';

/** The position of an event in the history of its channel. Ids are compared for equality only. */
export interface EventLink {
  readonly id: string;
  /** The id of the event before it. A subscriber that has not received that one has missed events. */
  readonly previous: string;
}

// A cursor is a list of positions, one for each topic: `topic=id&topic=id`. The position is that of the last
// event of the topic.

const ID = /^\d{1,20}-\d{1,20}$/;

const resumed = new AsyncLocalStorage<string>();

/** Creates the result of a `next()`. Events without a history have no cursor. */
export function resultOf<T>(value: T, cursor: string | undefined): EventResult<T> {
  return cursor === undefined ? { value, done: false } : { value, done: false, cursor };
}

/** Creates the function that turns the ids of a topic into cursors. */
export function cursorsOf(topic: string): (id: string) => string {
  const prefix = `${encodeURIComponent(topic)}=`;
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
  return resumed.run(cursor, run);
}

/** The cursor of the enclosing `resumeAfter`. */
export const resumedCursor = (): string | undefined => resumed.getStore();
