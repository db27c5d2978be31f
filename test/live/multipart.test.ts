/** @tags node graphql engine */
import { until } from '../until.ts';
import { open, serve } from './serve-streams.ts';

const accept =
  'multipart/mixed;boundary=graphql;subscriptionSpec=1.0,application/graphql-response+json,application/json;q=0.9';
const part = (json: string): string =>
  `\r\nContent-Type: application/json; charset=utf-8\r\n\r\n${json}\r\n--graphql`;

describe("subscriptions over Apollo's multipart protocol", () => {
  it('graphqlHTTP sends each event as a part with its payload', async () => {
    const { url } = await serve();
    const params = { query: 'subscription { count(to: 2) }' };
    const reading = await open(url, { params, headers: { accept } });
    await until(() => reading.ended);
    expect(reading.res.headers['content-type']).toBe(
      'multipart/mixed; boundary="graphql"; subscriptionSpec="1.0"',
    );
    expect(reading.body).toBe(
      `--graphql${part('{"payload":{"data":{"count":1}}}')}${part('{"payload":{"data":{"count":2}}}')}--\r\n`,
    );
  });

  it('graphqlHTTP sends errors of the source in the payload, or next to it after the first event', async () => {
    const { url, live } = await serve();
    const refused = await open(url, { params: { query: 'subscription { refused }' }, headers: { accept } });
    await until(() => refused.ended);
    expect(refused.body).toMatch(
      /\{"payload":\{"errors":\[\{"message":"not for you".*\]\}\}\r\n--graphql--\r\n$/,
    );
    const query = 'subscription { events(topic: "a") }';
    const failed = await open(url, { params: { query }, headers: { accept } });
    await until(() => live.open === 1);
    live.publish('a', 'x');
    live.end('a', new Error('secret'));
    await until(() => failed.ended);
    expect(failed.body).toMatch(
      /\{"payload":null,"errors":\[\{"message":"Internal server error".*\]\}\r\n--graphql--\r\n$/,
    );
  });

  it('graphqlHTTP refuses an invalid subscription with a plain response', async () => {
    const { url } = await serve();
    const reading = await open(url, { params: { query: 'subscription { unknown }' }, headers: { accept } });
    await until(() => reading.ended);
    expect([reading.status, reading.res.headers['content-type']]).toEqual([
      400,
      'application/graphql-response+json; charset=utf-8',
    ]);
  });

  it('a multipart subscription gets empty parts at the interval of the option ping', async () => {
    const { url } = await serve({}, { attach: { ping: 20 } });
    const params = { query: 'subscription { events(topic: "a") }' };
    const reading = await open(url, { params, headers: { accept } });
    await until(() => reading.body.startsWith(`--graphql${part('{}')}${part('{}')}`));
  });
});
