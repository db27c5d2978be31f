import { type Client, gql } from '@urql/core';
import { until } from '../until.ts';
import type { serve } from './serve-streams.ts';

/** Checks that a client of urql gets two events, and that its subscription ends. */
export async function assertEvents(
  client: Client,
  live: Awaited<ReturnType<typeof serve>>['live'],
): Promise<void> {
  const seen: unknown[] = [];
  const { unsubscribe } = client
    .subscription(gql('subscription { events(topic: "a") }'), {})
    .subscribe(({ data, error }) => seen.push(error ?? data));
  await until(() => live.open === 1);
  for (const event of ['one', 'two']) {
    live.publish('a', event);
    await until(() => JSON.stringify(seen.at(-1)) === JSON.stringify({ events: event }));
  }
  unsubscribe();
  await until(() => live.open === 0);
}
