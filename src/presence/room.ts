import { randomUUID } from 'node:crypto';
import type { Member, Presence, PresenceChange, PresenceOptions } from '../../types/presence.ts';
import type { EventStream, PubSub } from '../../types/pubsub.ts';
import { delay, resolveOptions, wrongArgument } from '../options/rules.ts';
import { PRESENCE_OPTIONS } from '../options/scopes.ts';
import { getOrCreate, isObject, isString } from '../options/values.ts';
import type { Source } from '../pubsub/cursor.ts';
import { DerivedStream, filter, map, openStream, positionsOf } from '../pubsub/derived.ts';
import {
  accessOf,
  type Entry,
  type PresenceAccess,
  type PresenceSnapshot,
  type PresenceStore,
  type TabsChange,
} from '../pubsub/presence-store.ts';

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
  return new Room<Data>(pubsub, options);
}

function assertTopic(name: string, topic: unknown): void {
  if (isString(topic)) return;
  throw wrongArgument({ ...PRESENCE_OPTIONS, name }, 'topic', topic, 'the name of a topic, a string');
}

/** Databases have no U+0000, and half of a surrogate pair changes on its way. */
const isId = (id: unknown): boolean => isString(id) && /^[^\0\p{Cs}]{1,256}$/su.test(id);

function assertMember(name: string, topic: unknown, member: unknown): void {
  assertTopic(name, topic);
  const scope = { ...PRESENCE_OPTIONS, name };
  if (!isObject(member)) throw wrongArgument(scope, 'member', member, 'an object such as { id, data }');
  if (isId(member['id'])) return;
  throw wrongArgument(scope, 'id', member['id'], 'a string of 1 to 256 characters, without U+0000');
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
  return new DerivedStream<T>([source, end], () => source.next(), positionsOf(source));
}

/** JSON of data. Undefined and functions have none. */
const toJson = (data: unknown): string => JSON.stringify(data) ?? 'null';

/** Returns the newest of the texts that processes have stored of a member: their times have one length. */
const newest = (texts: readonly string[]): string | undefined => [...texts].sort().at(-1);
const dataOf = (text: string): string => text.slice(text.indexOf(' ') + 1);
const memberOf = (id: string, text: string): Member => ({ id, data: JSON.parse(dataOf(text)) });

/** The changes of events: all streams of a process get the same event. */
const changesOf = new WeakMap<readonly TabsChange[], PresenceChange>();

const changeOf = (event: readonly TabsChange[]): PresenceChange =>
  getOrCreate(changesOf, event, () => {
    const joined: Member[] = [];
    const left: Member[] = [];
    for (const [id, before, after] of event) {
      const [was, is] = [newest(Object.values(before)), newest(Object.values(after))];
      if (is === undefined && was !== undefined) left.push(memberOf(id, was));
      else if (is !== undefined && is !== was) joined.push(memberOf(id, is));
    }
    return { joined, left };
  });

/** A member in this process: the data of each tab as JSON, the newest one last. */
type OwnTabs = Map<object, string>;

const newestOf = (tabs: OwnTabs | undefined): string | undefined => tabs && [...tabs.values()].at(-1);

/** A topic with members or streams in this process. */
class Place {
  readonly name: string;
  readonly channel: string;
  readonly members = new Map<string, OwnTabs>();
  /** The ids whose data the store does not have yet. */
  readonly changed = new Set<string>();
  watchers = 0;
  /** Resolves when the newest stream gets later events; undefined after that. */
  confirmed: Promise<void> | undefined;
  /** The version that the store has of this process. */
  version = '';
  running: Promise<void> | undefined;
  /** When the last successful update was sent, since when none was late, and whether one was late before that. */
  beat = -Infinity;
  since = 0;
  wasLate = false;

  constructor(name: string, channel: string) {
    this.name = name;
    this.channel = channel;
  }
}

/** The members of this process, and what the store knows of those of the others. */
class Room<Data> implements Presence<Data> {
  readonly #pubsub: PubSub<Record<string, readonly TabsChange[]>>;
  readonly #access: PresenceAccess;
  readonly #store: PresenceStore;
  readonly #ttl: number;
  readonly #process = randomUUID();
  readonly #places = new Map<string, Place>();
  readonly #timer: NodeJS.Timeout;
  #version = 0;
  /** Whether the last update has failed, which was reported. */
  #isFailing = false;
  #isClosed = false;

  constructor(pubsub: PubSub<object>, options: PresenceOptions | undefined) {
    const refused = (accepted: string): Error => wrongArgument(PRESENCE_OPTIONS, 'pubsub', pubsub, accepted);
    const access = accessOf(pubsub);
    if (access === undefined) throw refused('that of createPubSub');
    const { presence: store } = access;
    if (store === undefined) throw refused('one in memory, or over Redis or PostgreSQL');
    this.#pubsub = pubsub as PubSub<Record<string, readonly TabsChange[]>>;
    this.#access = access;
    this.#store = store;
    this.#ttl = resolveOptions<{ ttl: number }>(PRESENCE_OPTIONS, options, { ttl: delay(30_000) }).ttl;
    this.#timer = setInterval(() => this.#beat(), this.#ttl * TICK).unref();
    access.beforeClose(() => this.#close());
  }

  readonly join: Presence<Data>['join'] = (topic, member) => {
    assertMember('join', topic, member);
    const { id, data } = member;
    const place = this.#open(topic);
    const tab = {};
    let isOpen = true;
    const set = (json: string | undefined): void => {
      if (!isOpen || this.#isClosed) return;
      isOpen = json !== undefined;
      const tabs = getOrCreate(place.members, id, (): OwnTabs => new Map());
      const before = newestOf(tabs);
      tabs.delete(tab);
      if (json !== undefined) tabs.set(tab, json);
      if (tabs.size === 0) place.members.delete(id);
      if (newestOf(tabs) === before) return;
      place.changed.add(id);
      this.#update(place);
    };
    set(toJson(data));
    return { update: (next) => set(toJson(next)), leave: () => set(undefined) };
  };

  readonly during: Presence<Data>['during'] = (topic, member, stream) => {
    assertMember('during', topic, member);
    const source = openStream('during', 'stream', stream);
    const membership = this.join(topic, member);
    return whileOpen(source, membership.leave);
  };

  readonly changes: Presence<Data>['changes'] = (topic, options) => {
    assertTopic('changes', topic);
    const place = this.#open(topic);
    const stream = this.#pubsub.subscribe(place.name, options);
    const confirmed = this.#pubsub.ready(place.name).finally(() => {
      if (place.confirmed === confirmed) place.confirmed = undefined;
    });
    // The stream has the error.
    confirmed.catch(() => undefined);
    place.confirmed = confirmed;
    place.watchers++;
    const events = whileOpen(stream, () => {
      place.watchers--;
      this.#forget(place);
    });
    const shown = map(events, (event) => changeOf(event) as PresenceChange<Data>);
    // When the older tab of a member leaves, another process still shows the newer one.
    return filter(shown, ({ joined, left }) => joined.length + left.length > 0);
  };

  readonly members: Presence<Data>['members'] = async (topic) => {
    assertTopic('members', topic);
    const place = this.#find(topic);
    const { confirmed, channel } = place;
    // While the connection is lost, the read rejects, and the confirmation would wait.
    if (confirmed !== undefined) await Promise.race([confirmed, this.#store.read(channel)]);
    await confirmed;
    // The update that is on its way, and the one with the changes since.
    await place.running;
    await place.running;
    const snapshot = await this.#store.read(channel);
    const hidden = this.#silent(place, snapshot);
    return snapshot.tabs.flatMap(([id, tabs]) => {
      const shown = Object.entries(tabs).filter(([process]) => id !== '' && !hidden.has(process));
      const text = newest(shown.map(([, each]) => each));
      return text === undefined ? [] : [memberOf(id, text) as Member<Data>];
    });
  };

  #find(topic: string): Place {
    const { epoch } = this.#store;
    // After a restart, the cursors of local members that are gone are those of another topic.
    const name = epoch === undefined ? `presence:${topic}` : `presence:${epoch}:${topic}`;
    return this.#places.get(name) ?? new Place(name, this.#access.channelOf(name));
  }

  #open(topic: string): Place {
    const place = this.#find(topic);
    this.#places.set(place.name, place);
    return place;
  }

  #forget({ name, members, changed, watchers, version, running }: Place): void {
    const isUsed = members.size + changed.size + watchers > 0 || version !== '' || running !== undefined;
    if (!isUsed) this.#places.delete(name);
  }

  /** Updates the topics whose last update has failed or is old. Local members need none: they end with their process. */
  #beat(): void {
    const latest = this.#store.epoch === undefined ? performance.now() - this.#ttl * BEAT : -Infinity;
    for (const place of this.#places.values())
      if (place.changed.size > 0 || place.beat < latest) this.#update(place);
  }

  /** Brings the store up to date. One update of a topic runs at a time, with all changes since the one before. */
  #update(place: Place): void {
    place.running ??= this.#send(place).then((isSent) => {
      place.running = undefined;
      if (isSent && place.changed.size > 0) this.#update(place);
      else this.#forget(place);
    });
  }

  async #send(place: Place): Promise<boolean> {
    // The changes of one moment share an update.
    await undefined;
    const ids = [...place.changed];
    place.changed.clear();
    const version = place.members.size === 0 ? undefined : `${++this.#version}`;
    const entries = ids.map((id): Entry => [id, newestOf(place.members.get(id))]);
    const sent = performance.now();
    try {
      const { channel } = place;
      const snapshot = await this.#store.update(channel, this.#process, place.version, [
        ['', version],
        ...entries,
      ]);
      if (snapshot === undefined) await this.#reload(place);
      else {
        place.version = version ?? '';
        this.#noticeSilence(place, sent);
        await this.#sweep(place, snapshot);
      }
      this.#isFailing = false;
      return true;
    } catch (error) {
      for (const id of ids) place.changed.add(id);
      if (!this.#isFailing) this.#access.onError(error as Error);
      this.#isFailing = true;
      return false;
    }
  }

  /** The store has lost updates, or has applied one without a reply: all members are sent again. */
  async #reload(place: Place): Promise<void> {
    const { tabs } = await this.#store.read(place.channel);
    const own = new Map(tabs.filter(([, each]) => this.#process in each));
    place.version = dataOf(own.get('')?.[this.#process] ?? '');
    own.delete('');
    for (const id of [...own.keys(), ...place.members.keys()]) place.changed.add(id);
  }

  #noticeSilence(place: Place, sent: number): void {
    const now = performance.now();
    const silence = now - place.beat;
    if (silence > this.#ttl * GRACE) {
      place.since = now;
      place.wasLate = place.beat > 0;
    }
    // Others may have read without the members of this process.
    if (place.wasLate && silence > this.#ttl * LIFETIME)
      for (const id of place.members.keys()) place.changed.add(id);
    place.beat = sent;
  }

  /**
   * Returns the processes that have not written for a lifetime, with their versions. None if this one was cut off a short
   * time ago, perhaps together with all others, which then come back.
   */
  #silent({ beat, since, wasLate }: Place, { now, tabs }: PresenceSnapshot): ReadonlyMap<string, string> {
    const [time, lifetime] = [performance.now(), this.#ttl * LIFETIME];
    if (beat > 0 && (time - beat > this.#ttl * GRACE || (wasLate && time - since < lifetime)))
      return new Map();
    const others = Object.entries(new Map(tabs).get('') ?? {}).filter(([name]) => name !== this.#process);
    return new Map(others.filter(([, text]) => Number.parseInt(text, 10) < now - lifetime * 1000));
  }

  /** Takes out the members of dead processes, in their names. If one has written meanwhile, its version is another one. */
  async #sweep(place: Place, snapshot: PresenceSnapshot): Promise<void> {
    const { channel, since } = place;
    const dead = this.#silent(place, snapshot);
    if (dead.size === 0 || performance.now() - since < this.#ttl * LIFETIME) return;
    const { tabs } = await this.#store.read(channel);
    for (const [process, text] of dead) {
      const ids = tabs.filter(([id, each]) => id !== '' && process in each);
      const left = ids.map(([id]): Entry => [id, undefined]);
      await this.#store.update(channel, process, dataOf(text), [['', undefined], ...left]);
    }
  }

  /** Takes the members of this process out, as long as the connection is open. */
  async #close(): Promise<void> {
    this.#isClosed = true;
    clearInterval(this.#timer);
    const places = [...this.#places.values()];
    for (const place of places) {
      for (const id of place.members.keys()) place.changed.add(id);
      place.members.clear();
      if (place.changed.size > 0) this.#update(place);
    }
    // The updates that are on their way, and those with the changes since.
    for (const { running } of places) await running;
    for (const { running } of places) await running;
  }
}
