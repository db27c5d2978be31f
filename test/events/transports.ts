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
  readonly retries?: boolean;
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
    return `${this.#epoch}-0`;
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
    for (const transport of this.#connected) transport.deliver(channel, event);
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
  readonly #channels = new Set<string>();
  #listener: TransportListener | undefined;
  readonly #held = new Map<string, () => void>();
  #isClosed = false;

  constructor(broker: MemoryBroker, faults: Faults, history: boolean) {
    this.#broker = broker;
    this.#faults = faults;
    if (!history) return;
    this.history = {
      newest: async (channel) => broker.stored(channel).at(-1)?.id ?? broker.start,
      read: async (channel, after, limit) => {
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
    const { late } = this.#faults;
    if (late === undefined) this.#channels.add(channel);
    else setTimeout(() => this.#channels.add(channel), late);
  }

  unsubscribe(channel: string): void {
    this.#channels.delete(channel);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#broker.transports.delete(this);
    this.#channels.clear();
  }

  lost(): void {
    this.#listener?.lost();
  }

  connected(): void {
    if (this.#faults.silent !== true) this.#listener?.gap();
  }

  deliver(channel: string, { payload, ...link }: Stored): void {
    if (!this.#channels.has(channel)) return;
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
