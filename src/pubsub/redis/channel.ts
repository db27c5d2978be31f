import { setTimeout as delay } from 'node:timers/promises';
import type { RedisConnection } from '../../redis/connection.ts';
import { isRefusal, isReplyError } from '../../redis/reply-errors.ts';

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

/** Milliseconds after which a subscription that failed for a temporary reason is sent again. */
const RETRY_MILLISECONDS = 100;

/**
 * Subscribes to a channel, again after temporary errors, such as BUSY while Redis runs a slow script. Returns false if
 * the connection was lost, since the next one subscribes again, or if the subscription is not wanted any more.
 *
 * @throws ReplyError if Redis refuses the subscription.
 */
export async function subscribeTo(
  subscriber: RedisConnection,
  name: string,
  { isWanted, report }: { isWanted(): boolean; report(error: Error): void },
): Promise<boolean> {
  for (let isReported = false; ; isReported = true) {
    try {
      await subscriber.send((client) => client.subscribe(name));
      return true;
    } catch (error) {
      if (!isReplyError(error)) return false;
      if (isRefusal(error)) throw error;
      if (!isReported) report(error);
    }
    await delay(RETRY_MILLISECONDS, undefined, { ref: false });
    if (!isWanted()) return false;
  }
}
