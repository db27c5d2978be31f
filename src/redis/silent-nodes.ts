import type { Cluster } from 'ioredis';

/** The bytes that have arrived from a node, and the last check at which there were more. */
interface Arrival {
  readonly bytes: number;
  readonly check: number;
}

/** Finds the nodes of a cluster from which nothing arrives: the replies of one node prove nothing about another. */
export class SilentNodes {
  readonly #cluster: Cluster;
  /** The checks at which the commands in progress were sent, oldest first. */
  readonly #sent = new Set<{ readonly check: number }>();
  readonly #arrivals = new WeakMap<object, Arrival>();
  #check = 0;

  constructor(cluster: Cluster) {
    this.#cluster = cluster;
  }

  /** Called when a command is sent. The function that it returns is called when the command has settled. */
  track(): () => void {
    const command = { check: this.#check };
    this.#sent.add(command);
    return () => this.#sent.delete(command);
  }

  /** Returns the silent nodes if a command has waited for more than `limit` checks. */
  check(limit: number): ReturnType<Cluster['nodes']> {
    const check = ++this.#check;
    const [oldest] = this.#sent;
    const isLate = oldest !== undefined && check - oldest.check > limit;
    return this.#cluster.nodes().filter(({ stream }) => {
      if (stream === undefined) return false;
      const last = this.#arrivals.get(stream);
      if (last?.bytes !== stream.bytesRead) this.#arrivals.set(stream, { bytes: stream.bytesRead, check });
      return isLate && last?.bytes === stream.bytesRead && check - last.check > limit;
    });
  }
}
