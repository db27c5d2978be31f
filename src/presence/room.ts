import { randomUUID } from 'node:crypto';
import type { Member, Membership, Presence, PresenceChange, PresenceOptions } from '../../types/presence.ts';
import type { EventStream, PubSub, SubscribeOptions } from '../../types/pubsub.ts';
import { delay, type OptionScope, type Rules, resolveOptions, wrongArgument } from '../options/rules.ts';
import { PRESENCE_OPTIONS } from '../options/scopes.ts';
import { getOrCreate, isObject, isString } from '../options/values.ts';
import type { Source } from '../pubsub/cursor.ts';
import { DerivedStream, openStream } from '../pubsub/derived.ts';
import {
  accessOf,
  type PresenceAccess,
  type PresenceProcess,
  type PresenceSnapshot,
  type PresenceStore,
} from '../pubsub/presence-store.ts';

interface Settings {
  readonly ttl: number;
}

const RULES: Rules<Settings> = { ttl: delay(30_000) };

// Shares of the ttl. A process writes each `BEAT`, and counts as dead after `LIFETIME`: another one notices it in a `BEAT` and
// a `TICK` more, before the ttl has passed. After a silence of `GRACE` it may have been cut off together with all others, and
// judges them after a `LIFETIME`.
const TICK = 0.04;
const BEAT = 0.2;
const LIFETIME = 0.7;
const GRACE = 0.4;

/**
 * Creates the members of the topics of a pubsub: who is there, in all of its processes.
 *
 * @throws TypeError (code `ERR_OPTION`) for an unknown option, a wrong value, or a pubsub whose transport has no presence.
 * @example
 * const room = presence(events);
 * const subscribe = (_, { photo }, { user }) =>
 *   room.during(photo, { id: user.id, data: { name: user.name } }, room.changes(photo));
 */
export function presence<Data = unknown>(pubsub: PubSub<object>, options?: PresenceOptions): Presence<Data> {
  const access = accessOf(pubsub);
  if (access === undefined) throw wrongArgument(PRESENCE_OPTIONS, 'pubsub', pubsub, 'that of createPubSub');
  const { store } = access;
  if (store === undefined)
    throw wrongArgument(PRESENCE_OPTIONS, 'pubsub', pubsub, 'one in memory, or over Redis or PostgreSQL');
  const { ttl } = resolveOptions<Settings>(PRESENCE_OPTIONS, options, RULES);
  const room = new Room<Data>({ pubsub, access, store, ttl });
  return {
    join(topic, member) {
      assertMember('join', topic, member);
      return room.join(topic, member);
    },
    during(topic, member, stream) {
      assertMember('during', topic, member);
      const source = openStream('during', 'stream', stream);
      const membership = room.join(topic, member);
      return whileOpen(source, () => membership.leave());
    },
    members(topic) {
      assertTopic('members', topic);
      return room.members(topic);
    },
    changes(topic, subscribeOptions) {
      assertTopic('changes', topic);
      return room.changes(topic, subscribeOptions);
    },
  };
}

const scopeOf = (name: string): OptionScope => ({ ...PRESENCE_OPTIONS, name });

function assertTopic(name: string, topic: unknown): void {
  if (!isString(topic)) throw wrongArgument(scopeOf(name), 'topic', topic, 'the name of a topic, a string');
}

/** Databases have no U+0000, and half of a surrogate pair changes on its way. */
const isId = (id: unknown): boolean => isString(id) && /^[^\0\p{Cs}]{1,256}$/su.test(id);

function assertMember(name: string, topic: unknown, member: unknown): void {
  assertTopic(name, topic);
  if (!isObject(member))
    throw wrongArgument(scopeOf(name), 'member', member, 'an object such as { id, data }');
  if (isId(member['id'])) return;
  throw wrongArgument(scopeOf(name), 'id', member['id'], 'a string of 1 to 256 characters, without U+0000');
}

/** Returns a stream, and calls a function when it ends. */
function whileOpen<T>(source: Source<T>, ended: () => void): EventStream<T> {
  const end: Source<T> = {
    next: () => source.next(),
    async return() {
      ended();
      return { value: undefined, done: true };
    },
  };
  return new DerivedStream<T>([source, end], () => source.next(), {
    startCursor: () => source.startCursor,
    position: () => source.position,
  });
}

interface Owner {
  readonly pubsub: PubSub<object>;
  readonly access: PresenceAccess;
  readonly store: PresenceStore;
  readonly ttl: number;
}

/** A member in this process: the data of each tab as JSON, the newest one last. */
type Tabs = Map<object, string>;

/** A topic with members or streams in this process. */
interface Place {
  readonly name: string;
  readonly channel: string;
  readonly members: Map<string, Tabs>;
  /** The ids whose state the store does not have yet. */
  readonly changed: Set<string>;
  watchers: number;
  /** Resolves when the first stream gets later events. */
  confirmed: Promise<void> | undefined;
  /** The version that the store has of this process. */
  version: number;
  /** Whether the store has another version: it has lost its data, for example. */
  isUnknown: boolean;
  running: Promise<void> | undefined;
  /** The time of the last update. */
  beat: number;
}

const isIdle = ({ members, watchers }: Place): boolean => members.size === 0 && watchers === 0;

/** The members of this process, and what the store knows of those of the others. */
class Room<Data> {
  readonly #owner: Owner;
  readonly #process = randomUUID();
  /** After a restart, the cursors of local members that are gone are those of another topic. */
  readonly #prefix: string;
  readonly #places = new Map<string, Place>();
  #version = 0;
  #timer: NodeJS.Timeout | undefined;
  /** Whether the last update has failed, which was reported. */
  #isFailing = false;
  #isClosed = false;

  constructor(owner: Owner) {
    this.#owner = owner;
    this.#prefix = owner.store.epoch === undefined ? 'presence:' : `presence:${owner.store.epoch}:`;
    owner.access.beforeClose(() => this.#close());
  }

  join(topic: string, { id, data }: Member<Data>): Membership<Data> {
    const place = this.#place(topic);
    const tab = {};
    const set = (json: string | undefined): void => {
      if (this.#isClosed) return;
      const tabs = getOrCreate(place.members, id, (): Tabs => new Map());
      tabs.delete(tab);
      if (json !== undefined) tabs.set(tab, json);
      if (tabs.size === 0) place.members.delete(id);
      place.changed.add(id);
      this.#update(place);
    };
    let isOpen = true;
    set(toJson(data));
    return {
      update: (next) => {
        if (isOpen) set(toJson(next));
      },
      leave: () => {
        if (isOpen) set(undefined);
        isOpen = false;
      },
    };
  }

  changes(topic: string, options: SubscribeOptions | undefined): EventStream<PresenceChange<Data>> {
    const place = this.#place(topic);
    const { pubsub } = this.#owner;
    const events: Pick<
      PubSub<Record<string, PresenceChange<Data>>>,
      'subscribe' | 'ready'
    > = pubsub as PubSub<Record<string, PresenceChange<Data>>>;
    const stream = events.subscribe(place.name, options);
    place.watchers++;
    place.confirmed ??= events.ready(place.name);
    // The streams have the error.
    place.confirmed.catch(() => undefined);
    this.#update(place);
    return whileOpen(stream, () => {
      place.watchers--;
      if (place.watchers === 0) place.confirmed = undefined;
      this.#update(place);
    });
  }

  async members(topic: string): Promise<readonly Member<Data>[]> {
    const { store, access, ttl } = this.#owner;
    const name = this.#prefix + topic;
    const place = this.#places.get(name);
    const channel = place?.channel ?? access.channelOf(name);
    // While the connection is lost, the read rejects, and the confirmation would wait.
    if (place?.confirmed !== undefined) await Promise.race([place.confirmed, store.read(channel)]);
    await place?.confirmed;
    // What the store does not have yet would have no event if it was taken back.
    await place?.running;
    const found = newest(await store.read(channel), { own: this.#process, grace: ttl * GRACE });
    return [...found].map(([id, data]) => ({ id, data: JSON.parse(data) as Data }));
  }

  #place(topic: string): Place {
    const name = this.#prefix + topic;
    return getOrCreate(this.#places, name, () => ({
      name,
      channel: this.#owner.access.channelOf(name),
      members: new Map<string, Tabs>(),
      changed: new Set<string>(),
      watchers: 0,
      confirmed: undefined,
      version: 0,
      isUnknown: false,
      running: undefined,
      beat: 0,
    }));
  }

  /** Brings the store up to date. One update of a topic runs at a time, with all changes since the one before. */
  #update(place: Place): void {
    if (this.#isClosed) return;
    this.#startTimer();
    place.beat = 0;
    place.running ??= this.#run(place).finally(() => {
      place.running = undefined;
      if (place.beat === 0) this.#update(place);
      else if (isIdle(place) && place.changed.size === 0) this.#forget(place);
    });
  }

  async #run(place: Place): Promise<void> {
    // The changes of one moment share an update.
    await undefined;
    const { access, store, ttl } = this.#owner;
    while (place.beat === 0 || place.changed.size > 0 || place.isUnknown) {
      place.beat = performance.now();
      const { isUnknown } = place;
      const ids = isUnknown ? [...place.members.keys()] : [...place.changed];
      place.changed.clear();
      const lifetime = isIdle(place) ? 0 : Math.round(ttl * LIFETIME);
      const version = lifetime === 0 ? 0 : ++this.#version;
      try {
        const isApplied = await store.update(place.channel, {
          process: this.#process,
          expected: place.version,
          version,
          lifetime,
          grace: Math.round(ttl * GRACE),
          isFull: isUnknown,
          members: ids.map((id) => [id, [...(place.members.get(id)?.values() ?? [])].at(-1)]),
        });
        if (isApplied) place.version = version;
        place.isUnknown = !isApplied;
        this.#isFailing = false;
      } catch (error) {
        for (const id of ids) place.changed.add(id);
        if (!this.#isFailing) access.onError(error as Error);
        this.#isFailing = true;
        return;
      }
    }
  }

  #forget(place: Place): void {
    if (this.#places.get(place.name) === place) this.#places.delete(place.name);
    if (this.#places.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  #startTimer(): void {
    const { store, ttl } = this.#owner;
    if (store.epoch !== undefined) return;
    this.#timer ??= setInterval(() => this.#beat(), ttl * TICK).unref();
  }

  /** Updates the topics whose last update has failed or is old. */
  #beat(): void {
    const latest = performance.now() - this.#owner.ttl * BEAT;
    for (const place of this.#places.values())
      if (place.running === undefined && (place.changed.size > 0 || place.beat < latest)) this.#update(place);
  }

  /** Takes the members of this process out, as long as the connection is open. */
  async #close(): Promise<void> {
    const places = [...this.#places.values()];
    for (const place of places) {
      for (const id of place.members.keys()) place.changed.add(id);
      place.members.clear();
      place.watchers = 0;
    }
    // An update that is running takes the changes along.
    for (const place of places) this.#update(place);
    this.#isClosed = true;
    clearInterval(this.#timer);
    await Promise.all(places.map(({ running }) => running));
  }
}

/** JSON of data. Undefined and functions have none. */
const toJson = (data: unknown): string => JSON.stringify(data) ?? 'null';

/**
 * Returns the newest data of each member. Those of a process whose updates have ended are gone, unless this process was cut
 * off too: then they stay for as long as the others need to come back.
 */
function newest(
  { now, processes, entries }: PresenceSnapshot,
  { own, grace }: { readonly own: string; readonly grace: number },
): Map<string, string> {
  const heard = lastHeard(processes.get(own), now, grace);
  const isGone = (process: string): boolean => {
    const other = processes.get(process);
    return other !== undefined && other.last + other.lifetime < heard;
  };
  const found = new Map<string, string>();
  for (const { id, process, data } of [...entries].sort((a, b) => a.stamp - b.stamp))
    if (process === own || !isGone(process)) found.set(id, data);
  return found;
}

/** The time until which this process knows that the store was available. */
function lastHeard(own: PresenceProcess | undefined, now: number, grace: number): number {
  if (own === undefined) return now;
  if (now - own.last > grace) return own.last;
  // Before the first interruption there was none.
  return now - own.since < own.lifetime && own.before > 0 ? own.before : now;
}
