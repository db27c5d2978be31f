import { randomUUID } from 'node:crypto';
import type { PresenceChange } from '../../types/presence.ts';
import type { PublishOptions, PubSub } from '../../types/pubsub.ts';

/** A text of a channel, by its key: what it was and what it becomes, empty for none. */
export type TextChange = readonly [key: string, was: string, is: string];

export interface PresenceTexts {
  /** Microseconds of the clock of the store, a number of 16 digits. */
  readonly now: number;
  readonly texts: ReadonlyMap<string, string>;
}

/** Keeps texts. Only `presence` knows what they mean, so that every store does the same. */
export interface PresenceStore {
  /** A part of the names of topics if the texts are those of this process only: after a restart it is another one. */
  readonly epoch?: string;
  /** Returns all texts, or those of some keys, and of all that begin with `p` if other processes may have some. */
  read(channel: string, keys?: readonly string[]): Promise<PresenceTexts>;
  /**
   * Changes texts and publishes an event, both or neither. Resolves to false, and does nothing, if one of the texts was
   * another one.
   */
  write(channel: string, changes: readonly TextChange[], event: PresenceChange | undefined): Promise<boolean>;
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

type Publish = (channel: string, event: unknown, options: PublishOptions | undefined) => Promise<void>;

/** Keeps the texts of this process. */
export class LocalPresence implements PresenceStore {
  readonly epoch: string = `${randomUUID()}:`;
  readonly #publish: Publish;
  readonly #channels = new Map<string, Map<string, string>>();
  /** Instead of a time. */
  #now = 1e15;

  constructor(publish: Publish) {
    this.#publish = publish;
  }

  async read(channel: string, keys?: readonly string[]): Promise<PresenceTexts> {
    const texts = this.#channels.get(channel) ?? new Map<string, string>();
    const found = keys?.map((key) => [key, texts.get(key) ?? ''] as const);
    return { now: ++this.#now, texts: new Map(found ?? texts) };
  }

  async write(...[channel, changes, event]: Parameters<PresenceStore['write']>): Promise<boolean> {
    if (!this.#replace(channel, changes)) return false;
    try {
      if (event !== undefined) await this.#publish(channel, event, undefined);
    } catch (error) {
      const undone = changes.map(([key, was, is]): TextChange => [key, is, was]);
      this.#replace(channel, undone);
      throw error;
    }
    return true;
  }

  #replace(channel: string, changes: readonly TextChange[]): boolean {
    const texts = this.#channels.get(channel) ?? new Map<string, string>();
    if (changes.some(([key, was]) => (texts.get(key) ?? '') !== was)) return false;
    for (const [key, , is] of changes) {
      if (is === '') texts.delete(key);
      else texts.set(key, is);
    }
    if (texts.size === 0) this.#channels.delete(channel);
    else this.#channels.set(channel, texts);
    return true;
  }
}
