import { withTimeLimit } from '../http/timers.ts';
import {
  isNodeCluster,
  isReplyError,
  keyPrefixOf,
  type NodeRedis,
  type NodeRedisClient,
  type NodeRedisCluster,
  type RedisCommand,
  refusedOnce,
  sendToNodeRedis,
  withName,
} from './clients.ts';
import { type ClusterLine, nodeFor } from './cluster.ts';
import type { LineEvents, LineOptions, RedisLine } from './connection.ts';

interface NodeRedisTarget extends LineOptions {
  readonly client: NodeRedis;
  readonly commandTimeout: number;
  /** Whether the connection does not keep the process running. */
  readonly isShared?: boolean;
}

/** The methods for commands that its `sendCommand` cannot send. */
const METHODS: Readonly<
  Record<string, 'subscribe' | 'unsubscribe' | 'sSubscribe' | 'sUnsubscribe' | undefined>
> = {
  subscribe: 'subscribe',
  unsubscribe: 'unsubscribe',
  ssubscribe: 'sSubscribe',
  sunsubscribe: 'sUnsubscribe',
};

/**
 * A connection over node-redis. Each attempt has a new client: a client that connected again by itself would send
 * queued commands and subscribe again before this package knows of it.
 */
export class NodeRedisLine implements ClusterLine {
  readonly isCluster: boolean;
  readonly keyPrefix: string;
  isReady = false;
  isStarting = false;

  readonly #target: NodeRedisTarget;
  readonly #onMessage: (text: string, channel: string) => void;
  /** Whether the password comes from a function of the application. */
  readonly #isRenewed: boolean;
  #events!: LineEvents;
  #client: NodeRedis | undefined;
  #timer: NodeJS.Timeout | undefined;
  #attempts = 0;
  #isClosed = false;

  constructor(target: NodeRedisTarget) {
    const { client, onMessage } = target;
    this.#target = target;
    this.isCluster = isNodeCluster(client);
    this.keyPrefix = keyPrefixOf(client);
    const { password, credentialsProvider } = ('options' in client && client.options) || {};
    this.#isRenewed = password === undefined && credentialsProvider !== undefined;
    this.#onMessage = (text, channel) => onMessage?.(channel, text);
  }

  open(events: LineEvents): void {
    this.#events = events;
    void this.#connect();
  }

  async #connect(): Promise<void> {
    let client: NodeRedis | undefined;
    try {
      client = this.#create();
      this.#client = client;
      const created = client;
      // The client of a cluster replaces its nodes; the commands show whether it can.
      client.on('error', (error) => {
        if (isNodeCluster(created) && this.isReady) this.#events.error(error);
        else this.#lost(created, error);
      });
      client.on('sharded-channel-moved', () => this.#lost(created));
      this.isStarting = true;
      await client.connect();
    } catch (error) {
      this.#lost(client, error as Error);
      return destroy(client);
    }
    if (this.#client !== client) return destroy(client);
    this.isStarting = false;
    this.isReady = true;
    this.#attempts = 0;
    this.#events.ready();
  }

  #create(): NodeRedis {
    const { client, commandTimeout, isShared } = this.#target;
    if (isNodeCluster(client)) return client.duplicate({ useReplicas: false });
    const copy = duplicate(client, commandTimeout);
    if (isShared) copy.unref();
    return copy;
  }

  #lost(client: NodeRedis | undefined, cause?: Error): void {
    if (this.#isClosed || client !== this.#client) return;
    this.#destroy();
    if (cause !== undefined) {
      const error = withName(cause);
      this.#events.error(this.#isRenewed && isReplyError(error) ? refusedOnce(error) : error);
    }
    this.#events.closed();
    this.#retry();
  }

  #retry(): void {
    this.#attempts++;
    this.#timer = setTimeout(() => void this.#connect(), Math.min(this.#attempts * 50, 2000));
    if (this.#target.isShared) this.#timer.unref();
  }

  #destroy(): void {
    const client = this.#client;
    this.#client = undefined;
    this.isReady = false;
    this.isStarting = false;
    destroy(client);
  }

  async send(command: RedisCommand): Promise<unknown> {
    const client = this.#client as NodeRedis;
    const { name, args = [] } = command;
    if (!isNodeCluster(client)) {
      const method = METHODS[name];
      if (method === undefined) return sendToNodeRedis(client, command);
      return client[method](String(args[0]), this.#onMessage).catch((error: Error) => {
        throw withName(error);
      });
    }
    const sent = sendToCluster(client, command).finally(() => {
      if (this.#client !== client) destroy(client);
    });
    try {
      // The replies of one node prove nothing about another.
      return await withTimeLimit(sent, this.#target.commandTimeout, () => new Error('late'));
    } catch (error) {
      // It discards the commands that wait for a node.
      if (!isReplyError(error)) this.#lost(client, error as Error);
      throw error;
    }
  }

  masters(): readonly string[] {
    return this.#cluster?.masters.map(({ address }) => address) ?? [];
  }

  ownerOf(slot: number): string | undefined {
    return this.#cluster?.slots[slot]?.master.address;
  }

  async lineTo(address: string, options: LineOptions): Promise<RedisLine> {
    const cluster = this.#cluster;
    const master = cluster?.masters.find((each) => each.address === address);
    if (cluster === undefined || master === undefined) throw new Error('The master does not exist any more');
    const client = await cluster.nodeClient(master);
    return new NodeRedisLine({ ...options, client, commandTimeout: this.#target.commandTimeout });
  }

  get #cluster(): NodeRedisCluster | undefined {
    const client = this.#client;
    return client !== undefined && isNodeCluster(client) ? client : undefined;
  }

  reset(): void {
    this.#lost(this.#client);
  }

  leaveReplica(): void {
    this.#lost(this.#client);
  }

  async close(): Promise<void> {
    clearTimeout(this.#timer);
    this.#isClosed = true;
    this.#destroy();
  }
}

async function sendToCluster(client: NodeRedisCluster, command: RedisCommand): Promise<unknown> {
  const node = nodeFor(client.masters, command);
  return sendToNodeRedis(node === undefined ? client : await client.nodeClient(node), command);
}

/**
 * Destroys a client; again, if a connect or a command was waiting meanwhile: a cluster that then learns its nodes opens
 * connections to them, which nothing else would close.
 */
function destroy(client: NodeRedis | undefined): void {
  try {
    client?.destroy();
  } catch {
    // It is closed already.
  }
}

/** Copies a client without the settings that would change replies, or connect again. */
function duplicate(client: NodeRedisClient, connectTimeout: number): NodeRedisClient {
  const socket = { ...client.options?.socket, connectTimeout, reconnectStrategy: false };
  return client.duplicate({
    socket,
    disableOfflineQueue: true,
    commandsQueueMaxLength: undefined,
    commandOptions: undefined,
    clientSideCache: undefined,
    readonly: false,
  });
}
