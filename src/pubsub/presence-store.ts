import { randomUUID } from 'node:crypto';
import type { PublishOptions, PubSub } from '../../types/pubsub.ts';
import { getOrCreate } from '../options/values.ts';

/**
 * What each process says of a member: a time of 16 digits, a space, and the data as JSON. The newest one is shown. With the
 * id `''` it is the version of the process itself, and the time that of its last update.
 */
export type Tabs = Readonly<Record<string, string>>;

/** The tabs of a member before and after an update. A list of these is the event of the topic. */
export type TabsChange = readonly [id: string, was: Tabs, is: Tabs];

/** The data of an id; undefined for none, or no longer. */
export type Entry = readonly [id: string, data: string | undefined];

export interface PresenceSnapshot {
  /** Microseconds of the clock of the store. */
  readonly now: number;
  readonly tabs: readonly (readonly [id: string, tabs: Tabs])[];
}

/** Keeps what each process says. It neither merges nor judges: `presence` does. */
export interface PresenceStore {
  /** A part of the names of topics if the members are those of this process only: after a restart it is another one. */
  readonly epoch?: string;
  /**
   * Applies what a process says, the first entry with its version, and publishes the changes, both or neither. Resolves to
   * the versions of the processes, or to undefined if that of this one was not `expected`; then nothing has changed.
   */
  update(
    channel: string,
    process: string,
    expected: string,
    entries: readonly Entry[],
  ): Promise<PresenceSnapshot | undefined>;
  /** Returns the members and the versions. */
  read(channel: string): Promise<PresenceSnapshot>;
}

/** What presence needs of a pubsub. */
export interface PresenceAccess {
  /** Undefined if the transport has none. */
  readonly presence: PresenceStore | undefined;
  channelOf(topic: string): string;
  onError(error: Error): void;
  /** Called by `close()` while the connections are open. */
  beforeClose(close: () => Promise<unknown>): void;
}

/** `Symbol.for` makes the key equal in the CommonJS and the ES build. */
const ACCESS = Symbol.for('espalier.presence');

export const withAccess = <P extends object>(pubsub: P, access: PresenceAccess): P =>
  Object.defineProperty(pubsub, ACCESS, { value: access });

export const accessOf = (pubsub: PubSub<object>): PresenceAccess | undefined =>
  (pubsub as { readonly [ACCESS]?: PresenceAccess } | undefined)?.[ACCESS];

type Publish = (channel: string, changes: unknown, options: PublishOptions | undefined) => Promise<void>;

/** The members of one process, which need no clock: they end with it. */
export class LocalPresence implements PresenceStore {
  readonly epoch: string = randomUUID();
  readonly #publish: Publish;
  readonly #channels = new Map<string, Map<string, Tabs>>();
  /** Instead of a time. */
  #count = 1e15;

  constructor(publish: Publish) {
    this.#publish = publish;
  }

  async update(...update: Parameters<PresenceStore['update']>): Promise<PresenceSnapshot> {
    const [channel, process, , entries] = update;
    const known = getOrCreate(this.#channels, channel, () => new Map<string, Tabs>());
    const set = (id: string, tabs: Tabs) =>
      Object.keys(tabs).length > 0 ? known.set(id, tabs) : known.delete(id);
    const changes = entries.flatMap(([id, data]): TabsChange[] => {
      const was = known.get(id) ?? {};
      const { [process]: own, ...others } = was;
      if (id === '' || (own === undefined && data === undefined)) return [];
      const is = data === undefined ? others : { ...others, [process]: `${++this.#count} ${data}` };
      set(id, is);
      return [[id, was, is]];
    });
    try {
      if (changes.length > 0) await this.#publish(channel, changes, undefined);
    } catch (error) {
      for (const [id, was] of changes) set(id, was);
      throw error;
    } finally {
      if (known.size === 0) this.#channels.delete(channel);
    }
    return { now: 0, tabs: [] };
  }

  read(channel: string): Promise<PresenceSnapshot> {
    return Promise.resolve({ now: 0, tabs: [...(this.#channels.get(channel) ?? [])] });
  }
}
