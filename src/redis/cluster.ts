import { withTimeLimit } from '../http/timers.ts';
import { isReplyError, type RedisCommand } from './clients.ts';
import type { LineEvents, LineOptions, RedisLine } from './connection.ts';

/** The line for commands, which knows the masters of the cluster and their slots. */
export interface ClusterLine extends RedisLine {
  /** Returns the addresses of the masters. */
  masters(): readonly string[];
  /** Returns the address of the master of a slot. */
  ownerOf(slot: number): string | undefined;
  /** Creates a line to a master. */
  lineTo(address: string, options: LineOptions): RedisLine | Promise<RedisLine>;
}

interface SubscriberOptions extends LineOptions {
  readonly publisher: ClusterLine;
  readonly commandTimeout: number;
}

/**
 * The connection for messages of a cluster. Redis sends a message to all nodes, so that one of them is enough; a message
 * of a sharded channel stays on the master of its slot, so that a line to each master is needed. When one of them is
 * lost, or a slot has moved, all are opened again: events may be missing, whichever channel they belong to.
 */
export class ClusterSubscriber implements RedisLine {
  readonly isCluster = true;
  readonly keyPrefix: string;
  isReady = false;
  readonly #options: SubscriberOptions;
  #events!: LineEvents;
  #lines: ReadonlyMap<string, RedisLine> = new Map();
  #timer: NodeJS.Timeout | undefined;
  /** Since it was ready: attempts to connect, and those that have failed. */
  #attempts = 0;
  #losses = 0;
  /** It grows when slots get another master. The notice of that to a subscriber is overlooked by some clients. */
  #epoch = Number.NaN;
  #isClosed = false;

  constructor(options: SubscriberOptions) {
    this.keyPrefix = options.publisher.keyPrefix;
    this.#options = options;
  }

  get isStarting(): boolean {
    return [...this.#lines.values()].some((line) => line.isStarting);
  }

  open(events: LineEvents): void {
    this.#events = events;
    void this.#connect();
  }

  async #connect(): Promise<void> {
    const { publisher } = this.#options;
    let lines: ReadonlyMap<string, RedisLine> = new Map();
    try {
      if (publisher.isReady) lines = await this.#create();
    } catch {
      publisher.leaveReplica();
    }
    if (this.#isClosed) return;
    if (lines.size === 0) return this.#retry();
    this.#lines = lines;
    let count = 0;
    for (const line of lines.values()) {
      line.open({
        accepted: this.#events.accepted,
        ready: () => {
          count++;
          if (count < lines.size || this.#lines !== lines) return;
          this.isReady = true;
          this.#attempts = 0;
          this.#losses = 0;
          this.#events.ready();
        },
        closed: () => this.#lost(lines),
        error: (error) => {
          if (this.#lines === lines && !this.#isClosed) this.#events.error(error);
          this.#lost(lines);
        },
      });
    }
  }

  async #create(): Promise<ReadonlyMap<string, RedisLine>> {
    const { publisher, isSharded, onMessage } = this.#options;
    const masters = publisher.masters();
    const index = Math.floor(Math.random() * masters.length);
    if (isSharded === true) this.#epoch = await this.#currentEpoch();
    const used = isSharded === true ? masters : masters.slice(index, index + 1);
    const options = onMessage === undefined ? {} : { onMessage };
    return new Map(
      await Promise.all(
        used.map(
          async (address) => [address, await this.#inTime(publisher.lineTo(address, options))] as const,
        ),
      ),
    );
  }

  #lost(lines: ReadonlyMap<string, RedisLine>): void {
    if (this.#isClosed || this.#lines !== lines) return;
    this.#lines = new Map();
    this.isReady = false;
    for (const line of lines.values()) void line.close();
    this.#events.closed();
    this.#losses++;
    // One of the masters may not exist any more.
    if (this.#options.isSharded === true && this.#losses > 1) this.#options.publisher.leaveReplica();
    this.#retry();
  }

  #retry(): void {
    this.#attempts++;
    this.#timer = setTimeout(() => void this.#connect(), Math.min(this.#attempts * 50, 2000));
  }

  async send({ name, keys = [], args = [] }: RedisCommand): Promise<unknown> {
    const lines = this.#lines;
    const [key] = keys;
    const { publisher, isSharded } = this.#options;
    if (key === undefined) {
      const replies = await Promise.all([...lines.values()].map((line) => line.send({ name, args })));
      if (isSharded === true && (await this.#currentEpoch()) > this.#epoch) this.#lost(lines);
      return replies;
    }
    const channel = this.keyPrefix + key;
    try {
      const line = lines.get(publisher.ownerOf(slotOf(channel)) ?? '');
      if (line === undefined) throw new Error('The master of the slot is new');
      // ioredis 5 does not settle a command that is answered with MOVED.
      return await this.#inTime(line.send({ name, args: [channel] }));
    } catch (error) {
      if (isReplyError(error) && !error.message.startsWith('MOVED')) throw error;
      publisher.leaveReplica();
      this.#lost(lines);
      throw new Error('The slot of the channel has moved', { cause: error });
    }
  }

  /** Returns NaN if it is unknown, for example without the permission for the command. */
  async #currentEpoch(): Promise<number> {
    const { publisher } = this.#options;
    if (!publisher.isReady) return Number.NaN;
    const reply = this.#inTime(publisher.send({ name: 'cluster', args: ['INFO'] }));
    return Number(/current_epoch:(\d+)/.exec(String(await reply.catch(() => '')))?.[1]);
  }

  #inTime<T>(value: T | Promise<T>): Promise<T> {
    return withTimeLimit(Promise.resolve(value), this.#options.commandTimeout, () => new Error('late'));
  }

  reset(): void {
    for (const line of this.#lines.values()) line.reset();
  }

  leaveReplica(): void {
    this.#lost(this.#lines);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    await Promise.all([...this.#lines.values()].map((line) => line.close()));
  }
}

/**
 * Returns the node for a command with a `route`, always the same one. Clients send each command without a key to another
 * node.
 */
export function nodeFor<Node>(masters: readonly Node[], { route }: RedisCommand): Node | undefined {
  return route === undefined ? undefined : masters[slotOf(route) % masters.length];
}

/** The slot of a key: CRC16 of the part within its first braces (Redis cluster specification). */
function slotOf(key: string): number {
  const [, tag = key] = /^[^{]*\{([^}]+)\}/.exec(key) ?? [];
  let crc = 0;
  for (const byte of Buffer.from(tag)) {
    crc ^= byte << 8;
    for (let bit = 0; bit < 8; bit++) crc = (crc << 1) ^ (crc & 0x8000 ? 0x1021 : 0);
  }
  return crc & 0x3fff;
}
