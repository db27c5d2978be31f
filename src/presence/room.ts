import { randomUUID } from 'node:crypto';
import type { Member, Presence, PresenceChange, PresenceOptions } from '../../types/presence.ts';
import type { EventStream, PubSub } from '../../types/pubsub.ts';
import { delay, resolveOptions, wrongArgument } from '../options/rules.ts';
import { PRESENCE_OPTIONS } from '../options/scopes.ts';
import { getOrCreate, isObject, isString } from '../options/values.ts';
import type { Source } from '../pubsub/cursor.ts';
import { assertTopic, DerivedStream, openStream, positionsOf } from '../pubsub/derived.ts';
import {
  accessOf,
  type PresenceAccess,
  type PresenceStore,
  type PresenceTexts,
  type TextChange,
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

/** Databases have no U+0000, and half of a surrogate pair changes on its way. */
const isId = (id: unknown): boolean => isString(id) && /^[^\0\p{Cs}]{1,256}$/su.test(id);

function assertMember(name: string, topic: unknown, member: unknown): void {
  const scope = { ...PRESENCE_OPTIONS, name };
  assertTopic(scope, topic);
  if (!isObject(member)) throw wrongArgument(scope, 'member', member, 'an object such as { id, data }');
  if (isId(member['id'])) return;
  throw wrongArgument(scope, 'id', member['id'], 'a string of 1 to 256 characters, without U+0000');
}

/** Returns a stream, and calls a function when it ends. */
const whileOpen = <T>(source: Source<T>, ended: () => void): EventStream<T> =>
  new DerivedStream<T>([source], () => source.next(), positionsOf(source), ended);

/** The newest data of a member in one process, as JSON. */
type Tab = readonly [time: number, json: string];
/**
 * A member in all processes: the newest tab is shown. This is the text of `m` and the id in the store; that of `p` and the name
 * of a process is the time of its last update.
 */
type Tabs = Readonly<Record<string, Tab>>;

const isMember = (key: string): boolean => key.startsWith('m');
const tabsOf = (text = ''): Tabs => JSON.parse(text || '{}');
const newest = (tabs: Tabs): Tab | undefined =>
  Object.values(tabs)
    .sort(([a], [b]) => a - b)
    .at(-1);
const memberOf = (key: string, [, json]: Tab): Member => ({ id: key.slice(1), data: JSON.parse(json) });
const without = (tabs: Tabs, processes: readonly string[]): Record<string, Tab> =>
  Object.fromEntries(Object.entries(tabs).filter(([process]) => !processes.includes(process)));

/** The tabs of a member in this process: the data of each as JSON, the newest one last. */
type OwnTabs = Map<object, string>;

const newestOf = (tabs: OwnTabs | undefined): string | undefined => tabs && [...tabs.values()].at(-1);

/** A topic with members or streams in this process. */
class Place {
  readonly name: string;
  readonly channel: string;
  /** The key of this process in the store. */
  readonly process = `p${randomUUID()}`;
  /** By their keys in the store. */
  readonly members = new Map<string, OwnTabs>();
  /** The keys of those whose data the store does not have yet. */
  readonly changed = new Set<string>();
  watchers = 0;
  /** Resolves when the newest stream gets later events; undefined after that. */
  confirmed: Promise<void> | undefined;
  running: Promise<void> | undefined;
  /** The time of this process in the store; undefined if the store may have anything, and all is compared. */
  stored: string | undefined = '';
  /** When that was written. */
  beat = Infinity;
  /** From when on silent processes are hidden, and taken out. */
  hidesFrom = 0;
  sweepsFrom = Infinity;

  constructor(name: string, channel: string) {
    this.name = name;
    this.channel = channel;
  }

  get isUsed(): boolean {
    return this.members.size + this.watchers > 0;
  }

  /** Whether the store has what this process knows. */
  get isStored(): boolean {
    return this.changed.size === 0 && this.stored !== undefined && this.isUsed === (this.stored !== '');
  }
}

/** Adds what differs of some members from the texts of the store. Returns who joins and leaves by it; undefined for nobody. */
function addDifferences(
  changes: TextChange[],
  { process, members }: Place,
  { now, texts }: PresenceTexts,
  given: { readonly keys: Iterable<string>; readonly dead: readonly string[]; readonly isAnnounced: boolean },
): PresenceChange | undefined {
  const joined: Member[] = [];
  const left: Member[] = [];
  for (const key of [...given.keys].filter(isMember)) {
    const stored = texts.get(key) ?? '';
    const was = tabsOf(stored);
    const json = newestOf(members.get(key));
    const is: Record<string, Tab> = without(was, json === undefined ? [...given.dead, process] : given.dead);
    if (json !== undefined && (given.isAnnounced || json !== was[process]?.[1])) is[process] = [now, json];
    const [before, after] = [newest(was), newest(is)];
    if (after === undefined && before !== undefined) left.push(memberOf(key, before));
    else if (after !== undefined && after[0] !== before?.[0]) joined.push(memberOf(key, after));
    const text = after === undefined ? '' : JSON.stringify(is);
    if (text !== stored) changes.push([key, stored, text]);
  }
  return joined.length + left.length > 0 ? { joined, left } : undefined;
}

/** The members of this process, and what the store knows of those of the others. */
class Room<Data> implements Presence<Data> {
  readonly #pubsub: PubSub<Record<string, PresenceChange<Data>>>;
  readonly #access: PresenceAccess;
  readonly #store: PresenceStore;
  readonly #ttl: number;
  readonly #places = new Map<string, Place>();
  readonly #timer: NodeJS.Timeout;
  /** Whether the last update has failed, which was reported. */
  #isFailing = false;
  #isClosed = false;

  constructor(pubsub: PubSub<object>, options: PresenceOptions | undefined) {
    const refused = (accepted: string): Error => wrongArgument(PRESENCE_OPTIONS, 'pubsub', pubsub, accepted);
    const access = accessOf(pubsub);
    if (access === undefined) throw refused('that of createPubSub');
    if (access.presence === undefined) throw refused('one in memory, or over Redis or PostgreSQL');
    this.#pubsub = pubsub as PubSub<Record<string, PresenceChange<Data>>>;
    this.#access = access;
    this.#store = access.presence;
    this.#ttl = resolveOptions<{ ttl: number }>(PRESENCE_OPTIONS, options, { ttl: delay(30_000) }).ttl;
    this.#timer = setInterval(() => this.#beat(), this.#ttl * TICK).unref();
    access.beforeClose(() => this.#close());
  }

  readonly join: Presence<Data>['join'] = (topic, member) => {
    assertMember('join', topic, member);
    const key = `m${member.id}`;
    const place = this.#open('join', topic);
    const tab = {};
    let isOpen = true;
    const set = (json: string | undefined): void => {
      if (!isOpen || this.#isClosed) return;
      isOpen = json !== undefined;
      const tabs = getOrCreate(place.members, key, (): OwnTabs => new Map());
      const before = newestOf(tabs);
      tabs.delete(tab);
      if (json !== undefined) tabs.set(tab, json);
      if (tabs.size === 0) place.members.delete(key);
      if (newestOf(tabs) === before) return;
      place.changed.add(key);
      this.#update(place);
    };
    // Undefined and functions have no JSON.
    const update = (next: Data): void => set(JSON.stringify(next) ?? 'null');
    update(member.data);
    return { update, leave: () => set(undefined) };
  };

  readonly during: Presence<Data>['during'] = (topic, member, stream) => {
    assertMember('during', topic, member);
    const source = openStream('during', 'stream', stream);
    return whileOpen(source, this.join(topic, member).leave);
  };

  readonly changes: Presence<Data>['changes'] = (topic, options) => {
    const place = this.#open('changes', topic);
    const stream = this.#pubsub.subscribe(place.name, options);
    const confirmed = this.#pubsub.ready(place.name).finally(() => {
      if (place.confirmed === confirmed) place.confirmed = undefined;
    });
    // The stream has the error.
    confirmed.catch(() => undefined);
    place.confirmed = confirmed;
    place.watchers++;
    this.#settle(place);
    return whileOpen(stream, () => {
      place.watchers--;
      this.#settle(place);
    });
  };

  readonly members: Presence<Data>['members'] = async (topic) => {
    const place = this.#find('members', topic);
    const { channel, confirmed, running } = place;
    // While the connection is lost this rejects, and the confirmation would wait.
    let read = await this.#store.read(channel);
    if (confirmed !== undefined || running !== undefined) {
      await confirmed;
      // The update that was on its way, and the one with the changes since.
      await running;
      await place.running;
      read = await this.#store.read(channel);
    }
    const silent = performance.now() < place.hidesFrom || this.#isLate(place) ? [] : this.#silent(read);
    return [...read.texts].flatMap(([key, text]) => {
      const tab = isMember(key) ? newest(without(tabsOf(text), silent)) : undefined;
      return tab === undefined ? [] : [memberOf(key, tab) as Member<Data>];
    });
  };

  #find(method: string, topic: string): Place {
    assertTopic({ ...PRESENCE_OPTIONS, name: method }, topic);
    const { epoch = '' } = this.#store;
    const name = `presence:${epoch}${topic}`;
    return this.#places.get(name) ?? new Place(name, this.#access.channelOf(name));
  }

  #open(method: string, topic: string): Place {
    const place = this.#find(method, topic);
    this.#places.set(place.name, place);
    return place;
  }

  /** Updates the topics whose last update has failed or is old. */
  #beat(): void {
    const latest = performance.now() - this.#ttl * BEAT;
    for (const place of this.#places.values())
      if (!place.isStored || place.beat < latest) this.#update(place);
  }

  #settle(place: Place): void {
    if (!place.isStored) this.#update(place);
    else if (!place.isUsed && place.running === undefined) this.#places.delete(place.name);
  }

  /** Brings the store up to date. One update of a topic runs at a time, with all changes since the one before. */
  #update(place: Place): void {
    place.running ??= this.#run(place);
  }

  async #run(place: Place): Promise<void> {
    // The changes of one moment share an update.
    await undefined;
    try {
      await this.#write(place);
    } catch (error) {
      place.running = undefined;
      if (!this.#isFailing) this.#access.onError(error as Error);
      this.#isFailing = true;
      return;
    }
    place.running = undefined;
    this.#isFailing = false;
    this.#settle(place);
  }

  /**
   * Writes what has changed or, if the store may have anything of this process, all that differs. Each write changes the time of
   * this process, so that the store refuses one that arrives after a later one.
   */
  async #write(place: Place): Promise<void> {
    const { channel, process, changed, members } = place;
    const sent = performance.now();
    const isLate = this.#isLate(place);
    const stored = isLate ? undefined : place.stored;
    const keys = new Set(changed);
    changed.clear();
    place.stored = undefined;
    const read = await this.#store.read(channel, stored === undefined ? undefined : [process, ...keys]);
    const textOf = (key: string): string => read.texts.get(key) ?? '';
    const dead = sent < place.sweepsFrom || isLate ? [] : this.#silent(read);
    // The store has lost updates, or another process has taken this one for dead. Or this one takes out others.
    if (stored !== undefined && (dead.length > 0 || textOf(process) !== stored)) return;
    if (stored === undefined) for (const key of [...members.keys(), ...read.texts.keys()]) keys.add(key);
    const time = place.isUsed ? `${read.now}` : '';
    const changes = [...dead, process].map(
      (key): TextChange => [key, textOf(key), key === process ? time : ''],
    );
    // Others may have read without the members of this process: new times announce them.
    const event = addDifferences(changes, place, read, { keys, dead, isAnnounced: isLate });
    if (await this.#store.write(channel, changes, event)) {
      const judges = performance.now() + this.#ttl * LIFETIME;
      if (isLate) place.hidesFrom = judges;
      if (isLate || place.beat === Infinity) place.sweepsFrom = judges;
      place.stored = time;
      place.beat = sent;
    } else {
      // Another process has changed one of the members meanwhile.
      for (const key of keys) changed.add(key);
      place.stored = stored;
    }
  }

  /** Whether this process may have been cut off, perhaps together with all others, which then come back. */
  #isLate({ beat }: Place): boolean {
    return performance.now() - beat > this.#ttl * GRACE;
  }

  /** The processes that have not written for a lifetime. */
  #silent({ now, texts }: PresenceTexts): readonly string[] {
    const oldest = now - this.#ttl * LIFETIME * 1000;
    return [...texts]
      .filter(([key, time]) => key.startsWith('p') && Number(time) < oldest)
      .map(([key]) => key);
  }

  /** Takes the members of this process out, as long as the connection is open. */
  async #close(): Promise<void> {
    this.#isClosed = true;
    clearInterval(this.#timer);
    const places = [...this.#places.values()];
    for (const place of places) {
      for (const key of place.members.keys()) place.changed.add(key);
      place.members.clear();
      place.watchers = 0;
      this.#settle(place);
    }
    for (const place of places) while (place.running !== undefined) await place.running;
  }
}
