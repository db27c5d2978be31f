import { randomUUID } from 'node:crypto';
import type { PublishOptions, PubSub } from '../../types/pubsub.ts';

/** What a process has to say about its members of a channel. */
export interface PresenceUpdate {
  readonly process: string;
  /** The version that the store should have of this process, 0 for none, and the next one. */
  readonly expected: number;
  readonly version: number;
  /** The milliseconds after which the process counts as dead. 0 if it neither has members nor watches any more. */
  readonly lifetime: number;
  /**
   * The milliseconds of silence after which the process has been cut off. For a lifetime it then judges no other one: they
   * may have been cut off too.
   */
  readonly grace: number;
  /** Whether `members` are all of the process. */
  readonly isFull: boolean;
  /** The changed members with their data as JSON, undefined for those who left. */
  readonly members: readonly (readonly [id: string, data: string | undefined])[];
}

/** A member as one process knows it. */
export interface PresenceEntry {
  readonly id: string;
  readonly process: string;
  /** JSON. */
  readonly data: string;
  /** When the data was set. */
  readonly stamp: number;
}

/** A process in a store. Times are milliseconds of the clock of the store. */
export interface PresenceProcess {
  /** Its last update. */
  readonly last: number;
  /** The start of its updates without an interruption, and the last one before that. */
  readonly since: number;
  readonly before: number;
  readonly lifetime: number;
}

export interface PresenceSnapshot {
  readonly now: number;
  readonly processes: ReadonlyMap<string, PresenceProcess>;
  readonly entries: readonly PresenceEntry[];
}

/** Keeps the members of channels, and publishes their changes, each with its change of the store or not at all. */
export interface PresenceStore {
  /** A part of the names of topics if the members are those of this process only: after a restart it is another one. */
  readonly epoch?: string;
  /**
   * Applies an update, and removes dead processes. Resolves to false, and changes nothing, if the store has not the
   * expected version: the process repeats it with all members.
   */
  update(channel: string, update: PresenceUpdate): Promise<boolean>;
  read(channel: string): Promise<PresenceSnapshot>;
}

/** What presence needs of a pubsub. */
export interface PresenceAccess {
  /** Undefined if the transport has none. */
  readonly store: PresenceStore | undefined;
  channelOf(topic: string): string;
  onError(error: Error): void;
  /** Called by `close()` while the connections are open. */
  beforeClose(close: () => Promise<unknown>): void;
}

/** `Symbol.for` makes the key equal in the CommonJS and the ES build. */
const ACCESS = Symbol.for('espalier.presence');

interface WithAccess {
  readonly [ACCESS]?: PresenceAccess;
}

export const withAccess = <P extends object>(pubsub: P, access: PresenceAccess): P =>
  Object.defineProperty(pubsub, ACCESS, { value: access });

export const accessOf = (pubsub: PubSub<object>): PresenceAccess | undefined =>
  (pubsub as WithAccess | undefined)?.[ACCESS];

type Publish = (channel: string, change: unknown, options: PublishOptions | undefined) => Promise<void>;

/** The members of one process, which need no clock: they end with it. */
export class LocalPresence implements PresenceStore {
  readonly epoch: string = randomUUID();
  readonly #publish: Publish;
  readonly #channels = new Map<string, Map<string, PresenceEntry[]>>();
  #stamp = 0;

  constructor(publish: Publish) {
    this.#publish = publish;
  }

  async update(channel: string, { process, members }: PresenceUpdate): Promise<boolean> {
    const entries = this.#channels.get(channel) ?? new Map<string, PresenceEntry[]>();
    this.#channels.set(channel, entries);
    const joined: object[] = [];
    const left: object[] = [];
    for (const [id, data] of members) {
      const before = entries.get(id) ?? [];
      const others = before.filter((entry) => entry.process !== process);
      const own = before.find((entry) => entry.process === process && entry.data === data);
      if (own !== undefined) continue;
      const after = data === undefined ? others : [...others, { id, process, data, stamp: ++this.#stamp }];
      if (after.length > 0) entries.set(id, after);
      else entries.delete(id);
      const [was, is] = [before.at(-1)?.data, after.at(-1)?.data];
      if (is !== undefined && is !== was) joined.push({ id, data: JSON.parse(is) });
      else if (is === undefined && was !== undefined) left.push({ id, data: JSON.parse(was) });
    }
    if (entries.size === 0) this.#channels.delete(channel);
    if (joined.length + left.length > 0) await this.#publish(channel, { joined, left }, undefined);
    return true;
  }

  read(channel: string): Promise<PresenceSnapshot> {
    const entries = [...(this.#channels.get(channel)?.values() ?? [])].flat();
    return Promise.resolve({ now: 0, processes: new Map(), entries });
  }
}
