import type { Duration } from './connect.ts';
import type { EventStream, SubscribeOptions } from './pubsub.ts';

/** Options of `presence`. */
export interface PresenceOptions {
  /**
   * The longest time for which the members of a process that has crashed, or has lost its connection, stay. All processes
   * need the same value. A process reads and writes Redis or PostgreSQL five times in it, for each topic with a member or
   * a stream.
   * @default 30_000 (30 seconds)
   */
  ttl?: Duration | undefined;
}

/** Who is there. */
export interface Member<Data = unknown> {
  /** What the tabs and devices of one user have in common: 1 to 256 characters. */
  readonly id: string;
  /** What the others may see. It is sent as JSON. Several tabs have the data of the newest one. */
  readonly data: Data;
}

/** A change of the members of a topic. */
export interface PresenceChange<Data = unknown> {
  /** Those who have come, and those whose data has changed. A member that is known already may be named again. */
  readonly joined: readonly Member<Data>[];
  /** Those whose last tab has left, with their last data. */
  readonly left: readonly Member<Data>[];
}

/** One tab of a member. */
export interface Membership<Data = unknown> {
  /** Replaces the data. */
  update(data: Data): void;
  /** Takes the tab out. The member leaves with its last tab. */
  leave(): void;
}

/** Who is there, in all processes of a pubsub. */
export interface Presence<Data = unknown> {
  /**
   * Adds a member until `leave()` is called: for the life of a socket. While Redis is down the member waits, and is stored
   * when the connection is back.
   *
   * @throws TypeError (code `ERR_OPTION`) for a wrong id.
   */
  join(topic: string, member: Member<Data>): Membership<Data>;
  /**
   * Adds a member for as long as a stream is open: for the life of a subscription. Returns the stream, for the
   * `subscribe` resolver.
   *
   * @throws TypeError (code `ERR_OPTION`) for a wrong id, or a value that is not a stream.
   */
  during<T>(topic: string, member: Member<Data>, stream: AsyncIterable<T>): EventStream<T>;
  /**
   * Returns the members of a topic in all processes, in no order. Rejects if Redis or PostgreSQL does not reply.
   */
  members(topic: string): Promise<readonly Member<Data>[]>;
  /**
   * Streams the changes of the members from now on, or after a cursor, as `subscribe` of the pubsub does. `members`
   * of the same process contains all changes before the stream.
   */
  changes(topic: string, options?: SubscribeOptions): EventStream<PresenceChange<Data>>;
}
