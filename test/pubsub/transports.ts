import type { EventTransport, TransportListener } from '../../middleware/pubsub.ts';

/** Messages that a broker has and that a transport changes before it delivers them. */
interface Stored {
  readonly id: string;
  readonly previous: string;
  readonly payload: string;
}

/** Faults of a transport in memory, for tests of `testTransport`. */
export interface Faults {
  /** Milliseconds after which a resolved subscription has effect. */
  readonly late?: number;
  readonly twice?: boolean;
  readonly reordered?: boolean;
  /** Whether an interruption is not reported. */
  readonly silent?: boolean;
  /** Whether a read begins at the oldest event instead of returning 'missed'. */
  readonly lenient?: boolean;
  readonly unlinked?: boolean;
  /** The start of channels without events: none, the same one always, or another one for each call. */
  readonly start?: 'none' | 'constant' | 'changing';
  readonly retries?: boolean;
  /** Whether a channel gets the messages of all channels whose names begin with its name. */
  readonly prefixes?: boolean;
  /** Whether a repeated subscription delivers messages once more. */
  readonly repeated?: boolean;
  /** Whether a subscription that is not confirmed yet is confirmed to the next caller. */
  readonly hasty?: boolean;
  /** Whether a subscription begins with the last earlier message. */
  readonly retained?: boolean;
  /** Milliseconds after which a subscription is cancelled. */
  readonly unsubscribed?: number;
  readonly endless?: boolean;
  /** Whether the first read after an interruption rejects, as with a connection that has not noticed it: no fault. */
  readonly unread?: boolean;
}

/** A broker in memory for several transports, which can lose its connections. */
export class MemoryBroker {
  readonly #history: boolean;
  readonly #faults: Faults;
  readonly #channels = new Map<string, Stored[]>();
  readonly #connected = new Set<MemoryTransport>();
  readonly transports = new Set<MemoryTransport>();
  readonly #epoch = Date.now();

  constructor({ history = true, faults = {} as Faults } = {}) {
    this.#history = history;
    this.#faults = faults;
  }

  get start(): string {
    return this.#faults.start === 'constant' ? '0-0' : `${this.#epoch}-0`;
  }

  create = (): EventTransport => {
    const transport = new MemoryTransport(this, this.#faults, this.#history);
    this.transports.add(transport);
    this.#connected.add(transport);
    return transport;
  };

  /** Loses all connections for a moment, in which published events are stored only. */
  interrupt = async (): Promise<void> => {
    this.#connected.clear();
    for (const transport of this.transports) transport.lost();
    await new Promise((resolve) => setTimeout(resolve, 50));
    for (const transport of this.transports) {
      this.#connected.add(transport);
      transport.connected();
    }
  };

  append(channel: string, payload: string): void {
    const events = this.stored(channel);
    const previous = events.at(-1)?.id ?? this.start;
    const event = { id: `${this.#epoch}-${events.length + 1}`, previous, payload };
    events.push(event);
    for (const transport of this.#connected) transport.send(channel, event);
  }

  stored(channel: string): Stored[] {
    const events = this.#channels.get(channel) ?? [];
    this.#channels.set(channel, events);
    return events;
  }
}

class MemoryTransport implements EventTransport {
  readonly history: EventTransport['history'];
  readonly name = 'memory';
  readonly #broker: MemoryBroker;
  readonly #faults: Faults;
  /** The channels and the number of their subscriptions. */
  readonly #channels = new Map<string, number>();
  #listener: TransportListener | undefined;
  readonly #held = new Map<string, () => void>();
  readonly #pending = new Set<string>();
  #isClosed = false;
  #rejectsRead = false;

  constructor(broker: MemoryBroker, faults: Faults, history: boolean) {
    this.#broker = broker;
    this.#faults = faults;
    if (!history) return;
    this.history = {
      newest: async (channel, start) => {
        const last = broker.stored(channel).at(-1);
        if (last !== undefined) return last.id;
        if (faults.start === 'changing') return start;
        return faults.start === 'none' ? undefined : broker.start;
      },
      read: async (channel, after, limit) => {
        const rejects = this.#rejectsRead;
        this.#rejectsRead = false;
        if (rejects) throw new Error('no reply');
        const events = broker.stored(channel);
        const index = events.findIndex(({ previous }) => previous === after);
        if (index !== -1) return events.slice(index, index + limit);
        if (after === (events.at(-1)?.id ?? broker.start)) return [];
        return faults.lenient === true ? events.slice(0, limit) : 'missed';
      },
    };
  }

  open(listener: TransportListener): void {
    this.#listener = listener;
  }

  async publish(channel: string, payload: string): Promise<void> {
    if (this.#isClosed) throw new Error('closed');
    this.#broker.append(channel, payload);
    if (this.#faults.retries === true && payload === '30') this.#broker.append(channel, payload);
  }

  async subscribe(channel: string): Promise<void> {
    if (this.#isClosed) throw new Error('closed');
    const { late, repeated, hasty, retained } = this.#faults;
    const count = this.#channels.get(channel) ?? 0;
    if (hasty === true) {
      if (this.#pending.has(channel)) return;
      this.#pending.add(channel);
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    const add = () => this.#channels.set(channel, repeated === true ? count + 1 : 1);
    if (late === undefined) add();
    else setTimeout(add, late);
    const last = this.#broker.stored(channel).at(-1);
    if (retained === true && count === 0 && last !== undefined) this.deliver(channel, last);
  }

  unsubscribe(channel: string): void {
    const { unsubscribed } = this.#faults;
    if (unsubscribed === undefined) this.#channels.delete(channel);
    else setTimeout(() => this.#channels.delete(channel), unsubscribed);
  }

  async close(): Promise<void> {
    if (this.#faults.endless === true) await new Promise(() => undefined);
    this.#isClosed = true;
    this.#broker.transports.delete(this);
    this.#channels.clear();
  }

  lost(): void {
    this.#listener?.lost();
  }

  connected(): void {
    this.#rejectsRead = this.#faults.unread === true;
    if (this.#faults.silent !== true) this.#listener?.gap();
  }

  send(channel: string, event: Stored): void {
    for (const [name, count] of this.#channels) {
      if (name !== channel && !(this.#faults.prefixes === true && channel.startsWith(name))) continue;
      for (let index = 0; index < count; index++) this.deliver(name, event);
    }
  }

  deliver(channel: string, { payload, ...link }: Stored): void {
    const { twice, reordered, unlinked } = this.#faults;
    const send = (): void => {
      const hasLink = this.history !== undefined && unlinked !== true;
      this.#listener?.message(channel, payload, hasLink ? link : undefined);
    };
    if (reordered === true && payload === '7') {
      this.#held.set(channel, send);
      return;
    }
    send();
    this.#held.get(channel)?.();
    this.#held.delete(channel);
    if (twice === true && payload === '9') send();
  }
}
