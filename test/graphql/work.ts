import type { GraphQLResolveInfo } from 'graphql';

type Info = GraphQLResolveInfo & { getAbortSignal?: () => AbortSignal | undefined };

interface Pending {
  resolve(value: number): void;
  reject(error: Error): void;
}

/** The resolvers that have started, and functions that end all of them. */
export class Work {
  readonly infos: Info[] = [];
  readonly #begun: (() => void)[] = [];
  readonly #pending: Pending[] = [];

  readonly resolve = (_source: unknown, _args: unknown, _context: unknown, info: Info): Promise<number> => {
    this.infos.push(info);
    const waiting = new Promise<number>((resolve, reject) => this.#pending.push({ resolve, reject }));
    for (const notify of this.#begun.splice(0)) notify();
    return waiting;
  };

  async begun(count: number): Promise<void> {
    while (this.infos.length < count) await new Promise<void>((notify) => this.#begun.push(notify));
  }

  end(): void {
    for (const { resolve } of this.#pending.splice(0)) resolve(1);
  }

  fail(error: Error): void {
    for (const { reject } of this.#pending.splice(0)) reject(error);
  }
}
