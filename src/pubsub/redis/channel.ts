/** A subscription that Redis has to confirm. */
export interface RedisChannel {
  readonly confirmed: Promise<void>;
  resolve(): void;
  reject(error: Error): void;
  /** Whether Redis has confirmed the subscription on the current connection. */
  isConfirmed: boolean;
}

/** Creates the error for the streams of a channel that Redis refuses. */
export function refusedSubscription(name: string, cause: Error): Error {
  return Object.assign(
    new Error(`Cannot subscribe to the Redis channel "${name}": ${cause.message}`, { cause }),
    {
      code: 'ERR_EVENTS_REFUSED',
    },
  );
}

export function createRedisChannel(): RedisChannel {
  const channel = { isConfirmed: false } as RedisChannel & { confirmed: Promise<void> };
  channel.confirmed = new Promise((resolve, reject) => {
    channel.resolve = resolve;
    channel.reject = reject;
  });
  // Avoids an unhandled rejection: a channel may have no caller of `ready`.
  channel.confirmed.catch(() => undefined);
  return channel;
}
