/** @tags node graphql */
import { buildSchema } from 'graphql';
import request from 'supertest';
import { graphqlHTTP } from '../../middleware/graphql.ts';
import { eachExpress } from '../express.ts';

const schema = buildSchema('type Query { hello: String } type Mutation { add: Int }');
const environment = process.env['NODE_ENV'];
afterEach(() => {
  process.env['NODE_ENV'] = environment;
});

eachExpress((express) => {
  function serve({ trustProxy = false }: { trustProxy?: boolean } = {}) {
    const runs = { count: 0 };
    const app = express();
    app.set('trust proxy', trustProxy);
    app.use('/graphql', graphqlHTTP(schema, { rootValue: { add: () => ++runs.count, hello: 'world' } }));
    return { runs, get: (query: string) => request(app).get(`/graphql?query=${encodeURIComponent(query)}`) };
  }

  it.each([
    ['Slack', { 'user-agent': 'Slackbot-LinkExpanding 1.0 (+https://api.slack.com/robots)' }],
    ['WhatsApp', { 'user-agent': 'WhatsApp/2.23.20.0' }],
    [
      'Facebook',
      { 'user-agent': 'facebookexternalhit/1.1 (+http://www.facebook.com/externalhit_uatext.php)' },
    ],
    ['Twitter', { 'user-agent': 'Twitterbot/1.0' }],
    ['Telegram', { 'user-agent': 'TelegramBot (like TwitterBot)' }],
    ['Discord', { 'user-agent': 'Discordbot/2.0; +https://discordapp.com' }],
    ['LinkedIn', { 'user-agent': 'LinkedInBot/1.0 (compatible; Apache-HttpClient)' }],
    ['Google', { 'user-agent': 'Googlebot/2.1 (+http://www.google.com/bot.html)' }],
    ['a client that prefers images', { accept: 'image/avif,image/webp,image/png,*/*;q=0.8' }],
    ['a client that prefers pages to JSON', { accept: 'application/xhtml+xml,*/*;q=0.5' }],
  ])('a mutation over GET does not run for %s, and a query does', async (_name, headers) => {
    const { get, runs } = serve();
    const { body } = await get('mutation { add }').set(headers).expect(403);
    expect(body.errors[0].extensions.code).toBe('CROSS_SITE');
    expect(runs.count).toBe(0);
    await get('{ hello }')
      .set(headers)
      .expect(200, { data: { hello: 'world' } });
  });

  it.each([
    ['curl', { 'user-agent': 'curl/8.5.0', accept: '*/*' }],
    ['a client without a user agent', { 'user-agent': '' }],
    ['a client that prefers JSON', { accept: 'application/json, text/html;q=0.5' }],
  ])('a mutation over GET runs for %s', async (_name, headers) => {
    const { get, runs } = serve();
    await get('mutation { add }').set(headers).expect(200);
    expect(runs.count).toBe(1);
  });

  const proxied = {
    origin: 'https://wall.example',
    host: 'internal:8080',
    'x-forwarded-host': 'wall.example',
    'x-forwarded-proto': 'https',
  };

  it('a mutation over GET runs for the own origin behind a trusted proxy that replaces Host', async () => {
    const { get } = serve({ trustProxy: true });
    await get('mutation { add }').set(proxied).expect(200);
    await get('mutation { add }')
      .set({ ...proxied, 'x-forwarded-host': 'wall.example, inner' })
      .expect(200);
  });

  it.each([
    ['another origin', { origin: 'https://evil.example' }],
    ['another scheme', { origin: 'http://wall.example' }],
    ['another forwarded host', { 'x-forwarded-host': 'evil.example' }],
  ])('a mutation over GET is refused behind a trusted proxy for %s', async (_name, headers) => {
    const { get } = serve({ trustProxy: true });
    await get('mutation { add }')
      .set({ ...proxied, ...headers })
      .expect(403);
  });

  it('graphqlHTTP ignores forwarding headers without trust proxy', async () => {
    const { get } = serve();
    await get('mutation { add }').set(proxied).expect(403);
    await get('mutation { add }')
      .set({ ...proxied, origin: 'https://internal:8080' })
      .expect(200);
  });

  it('graphqlHTTP names the origin, host and option in a refusal only outside production', async () => {
    const refusal = async () => {
      const { get } = serve();
      const { body } = await get('mutation { add }').set(proxied).expect(403);
      return body.errors[0].message as string;
    };
    expect(await refusal()).toMatch(/https:\/\/wall\.example.*internal:8080.*getMutations/);
    process.env['NODE_ENV'] = 'production';
    expect(await refusal()).not.toMatch(/wall|internal|getMutations/);
  });
});

it('graphqlHTTP logs one line in production that names the defaults which are on', () => {
  jest.isolateModules(() => {
    const warn = jest.spyOn(console, 'warn').mockImplementation();
    process.env['NODE_ENV'] = 'production';
    const { graphqlHTTP: create } =
      require('../../middleware/graphql.ts') as typeof import('../../middleware/graphql.ts');
    const { buildSchema: build } = require('graphql') as typeof import('graphql');
    const options = { graphiql: false, introspection: false, getMutations: false } as const;
    create(build('type Query { hello: String }'), options);
    expect(warn).not.toHaveBeenCalled();
    create(build('type Query { hello: String }'), { introspection: false });
    create(build('type Query { hello: String }'));
    expect(warn.mock.calls).toEqual([
      [expect.stringMatching(/defaults are on: graphiql, getMutations\. See .*security\.md/)],
    ]);
    warn.mockRestore();
  });
});
