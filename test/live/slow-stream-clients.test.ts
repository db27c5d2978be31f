/** @tags node graphql slow */
import { until } from '../until.ts';
import { EVENTS, open, serve } from './serve-streams.ts';

const LARGE = 'x'.repeat(256 * 1024);

describe('slow clients of event streams', () => {
  it('the source of a private subscription pauses for a client that does not read, which is then disconnected', async () => {
    const { url, subscriptions, live } = await serve();
    const query = 'subscription { blobs(count: 1000, bytes: 262144) }';
    const reading = await open(url, { params: { query }, headers: EVENTS });
    reading.res.pause();
    await until(() => subscriptions.stats().sources === 1);
    let calls = -1;
    while (calls !== live.calls['blobs']) {
      calls = live.calls['blobs'] ?? 0;
      await new Promise((resolve) => setTimeout(resolve, 200));
    }
    expect(calls).toBeLessThan(1000);
    await until(() => subscriptions.stats().connections === 0 && live.open === 0);
  });

  it('a shared subscription disconnects a slow client at limits.bufferedBytes and serves the others', async () => {
    const attach = { share: () => 'all', limits: { bufferedBytes: 512 * 1024 } };
    const { url, subscriptions, live } = await serve({}, { attach });
    const params = { query: 'subscription { events(topic: "a") }' };
    const fast = await open(url, { params, headers: EVENTS });
    const slow = await open(url, { params, headers: EVENTS });
    slow.res.pause();
    await until(() => subscriptions.stats().operations === 2);
    let published = 0;
    await until(() => {
      if (fast.body.length >= published * LARGE.length) {
        live.publish('a', LARGE);
        published++;
      }
      return subscriptions.stats().connections === 1;
    }, 20_000);
    live.publish('a', 'after');
    await until(() => fast.body.includes('"after"'));
    fast.req.destroy();
    await until(() => live.open === 0);
  });
});
