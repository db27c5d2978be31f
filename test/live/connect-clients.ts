import { MODERN, type RawClient, ready } from './client.ts';
import { type Served, until } from './serve.ts';

export const EVENTS = 'subscription($topic: String!) { events(topic: $topic) }';

/** The message that subscribes to a topic's events. */
export const events = (id: string, topic = 'a', type = 'subscribe'): object => ({
  id,
  type,
  payload: { query: EVENTS, variables: { topic } },
});

/** Shares all subscriptions and sends no pings. */
export const sharedByAll = { ping: false as const, share: () => 'all' };

/** The events that a client has received under one id. */
export const received = (client: RawClient, id: string): unknown[] =>
  client.received
    .filter((message) => message['id'] === id && (message['type'] === 'next' || message['type'] === 'data'))
    .map(({ payload }) => (payload as { data: { events: unknown } }).data.events);

/** Clients with one subscription each, with the ids `client 0`, `client 1` … */
export async function connectClients(
  { url, subscriptions, live }: Served,
  count: number,
): Promise<RawClient[]> {
  const clients = await Promise.all(Array.from({ length: count }, () => ready(url, MODERN)));
  for (const [index, client] of clients.entries()) client.send(events(`client ${index}`));
  await until(() => subscriptions.stats().operations === count && live.open > 0);
  return clients;
}
