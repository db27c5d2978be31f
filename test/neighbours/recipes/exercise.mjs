// Sends operations to the recipes of the documentation and prints the results: node exercise.mjs, in a folder with the
// recipes as modules.
import { PGlite } from '@electric-sql/pglite';
import { PGLiteSocketServer } from '@electric-sql/pglite-socket';
import { inject, subscribe } from 'espalier/testing';
import { Kafka, logLevel } from 'kafkajs';

// The copies of a recipe stand for processes, which share the key of their cursors.
process.env.CURSOR_KEY = 'the key of the cursors of all copies';
const results = {};

/** Loads a recipe, and records the results of operations that it executes. */
async function exercise(name, requests) {
  const recipe = await import(`./${name}.mjs`);
  results[name] = [];
  for (const request of requests) {
    const { data, errors, extensions } = await inject(recipe.handler, request);
    results[name].push({
      data,
      errors: errors?.map((error) => [error.message, error.extensions?.code]),
      extensions,
    });
  }
  return recipe;
}

/** Fails in a resolver, and returns what Sentry would send. */
async function exerciseSentry() {
  const Sentry = await import('@sentry/node');
  const { handler } = await import('./sentry.mjs');
  const events = [];
  Sentry.getClient().on('beforeSendEvent', (event) => {
    events.push([event.exception.values[0].value, event.tags]);
  });
  Sentry.getClient().getOptions().dsn = 'http://key@127.0.0.1:1/1';
  const error = console.error;
  console.error = () => {};
  const { errors } = await inject(handler, { query: 'query Break { broken }' });
  console.error = error;
  await Sentry.flush(1000);
  return { events, errors: errors.map(({ message }) => message) };
}

/** Counts the queries for a list of articles. */
async function exerciseDrizzle() {
  const { client, handler } = await import('./drizzle.mjs');
  await client.exec(`
    create table authors (id int primary key, name text not null);
    create table articles (id int primary key, title text not null, author_id int not null);
    insert into authors values (1, 'Ada'), (2, 'Bob');
    insert into articles values (1, 'One', 1), (2, 'Two', 2), (3, 'Three', 1);
  `);
  const query = client.query.bind(client);
  let queries = 0;
  client.query = (...words) => {
    queries += 1;
    return query(...words);
  };
  const { data } = await inject(handler, { query: '{ articles { title author { name } } }' });
  return { data, queries };
}

/** Publishes to a stream that stores three messages, and continues after the first one twice. */
async function exerciseNats() {
  const { handler, nats } = await import('./events.mjs');
  const { jetstream, jetstreamManager } = await import('@nats-io/jetstream');
  const manager = await jetstreamManager(nats);
  await manager.streams.add({ name: 'ORDERS', subjects: ['orders'], max_msgs: 3 });
  const publish = (text) => jetstream(nats).publish('orders', text);
  const open = (after) => subscribe(handler, { query: 'subscription { order }', extensions: { after } });
  const orderOf = async (stream) => (await stream.next()).value.data?.order;

  const first = await open(null);
  await first.next();
  await publish('one');
  const { value: one } = await first.next();
  await first.return();
  for (const text of ['two', 'three']) await publish(text);
  const second = await open(one.extensions.cursor);
  const orders = [one.data.order, await orderOf(second), await orderOf(second)];
  await second.return();
  for (const text of ['four', 'five', 'six']) await publish(text);
  const late = await open(one.extensions.cursor);
  const { errors } = (await late.next()).value;
  return { orders, errors: errors.map(({ extensions }) => extensions) };
}

/** Writes to a partition, and continues after its first message in two further copies of the recipe: a restart. */
async function exerciseKafka() {
  const kafka = new Kafka({ brokers: [process.env.KAFKA_BROKER], logLevel: logLevel.ERROR });
  const producer = kafka.producer();
  await producer.connect();
  const publish = (values) =>
    producer.send({ topic: 'orders', messages: values.map((value) => ({ partition: 0, value })) });
  const open = async (copy, after) => {
    const { handler } = await import(`./kafka.mjs?${copy}`);
    return subscribe(handler, { query: 'subscription { order }', extensions: { after } });
  };
  const orderOf = async (stream) => (await stream.next()).value.data?.order;

  const first = await open('first', null);
  await first.next();
  await publish(['one']);
  const { value: one } = await first.next();
  await first.return();
  await publish(['two', 'three']);
  const second = await open('second', one.extensions.cursor);
  const orders = [one.data.order, await orderOf(second), await orderOf(second)];
  await second.return();
  await publish(Array.from({ length: 1000 }, (_, index) => `${index}`));
  const late = await open('third', one.extensions.cursor);
  const { errors } = (await late.next()).value;
  return { orders, errors: errors.map(({ extensions }) => extensions) };
}

const ada = { authorization: 'ada' };
const items = 'query ($first: Int!) { items(first: $first) { name } }';

await exercise('query-complexity', [
  { query: items, variables: { first: 10 } },
  { query: items, variables: { first: 1000 } },
]);
await exercise('limits', [
  { query: '{ user { name } }' },
  { query: '{ user { friends { friends { friends { name } } } } }' },
  { query: '{ a: user { name } b: user { name } c: user { name } }' },
]);
await exercise('permissions', [
  { query: '{ open secret }' },
  { query: '{ open secret }', headers: ada },
  { query: '{ broken }' },
]);
const { handler: typegraphql } = await exercise('typegraphql', [
  { query: '{ hello(name: "Ada") me }', headers: { authorization: 'Bearer secret' } },
  { query: '{ me }' },
]);
results.countdown = [];
for await (const { data } of await subscribe(typegraphql, { query: 'subscription { countdown(from: 2) }' }))
  results.countdown.push(data.countdown);
await exercise('nexus', [{ query: '{ hello }' }]);
await exercise('graphql-modules', [{ query: '{ user }' }]);
const entities = 'query ($these: [_Any!]!) { _entities(representations: $these) { ... on User { name } } }';
const user = (id) => ({ __typename: 'User', id });
await exercise('subgraph', [
  { query: entities, variables: { these: [user('1'), user('2')] } },
  { query: '{ _service { sdl } }' },
]);
const secret = { authorization: 'Bearer secret' };
const reports = 'query ($first: Int!) { reports(first: $first) }';
await exercise('pothos', [
  { query: '{ me reports(first: 2) }', headers: secret },
  { query: '{ me }' },
  { query: reports, variables: { first: 2 }, headers: { authorization: 'Bearer other' } },
  { query: reports, variables: { first: 1000 }, headers: secret },
]);
const staff = { authorization: 'Bearer staff' };
const authors = '_entities(representations: $these) { ... on Author { name email } }';
const author = { __typename: 'Author', id: '1' };
await exercise('pothos-behind-a-gateway', [
  {
    query: `query ($these: [_Any!]!) { ${authors} }`,
    variables: { these: [author, { ...author, id: '7' }] },
    headers: secret,
  },
  { query: '{ reviews(first: 5) { author { email } } }', headers: staff },
  { query: '{ reviews(first: 5000) { text } }' },
  { query: 'mutation { a: report(text: "") b: report(text: "") c: report(text: "") }', headers: secret },
  { query: '{ _service { sdl } }' },
]);
await exercise('scopes', [{ query: '{ me }', headers: secret }, { query: '{ me }' }]);
const list =
  'query ($first: Int, $after: String) { articles(first: $first, after: $after) { nodes { title } pageInfo { endCursor hasNextPage } } }';
const { handler: connections } = await exercise('connections', [
  { query: list, variables: { first: 2, after: 'nonsense' } },
  { query: list, variables: { first: 101 } },
  { query: list, variables: { first: 1000 } },
  {
    query: 'query ($id: ID!) { node(id: $id) { ... on Article { title } } }',
    variables: { id: Buffer.from('Article:3').toString('base64url') },
  },
]);
results.pages = [];
for (let after = null; after !== undefined; ) {
  const { data } = await inject(connections, { query: list, variables: { first: 2, after } });
  results.pages.push(data.articles.nodes.map(({ title }) => title));
  after = data.articles.pageInfo.hasNextPage ? data.articles.pageInfo.endCursor : undefined;
}
results['sentry'] = await exerciseSentry();
results['drizzle'] = await exerciseDrizzle();
await exercise('plugins', [
  { query: '{ user hello }', headers: ada },
  { query: '{ __schema { description } }' },
]);
const plans = await exercise('plans', [
  { query: 'query ($a: Int!) { add(a: $a, b: 2) me }', variables: { a: 40 }, headers: ada },
]);
const overSocket = await subscribe(plans.handler, { query: '{ add(a: 1, b: 2) }' });
results.socket = (await overSocket.next()).value;
await overSocket.return();

const database = await PGlite.create();
await database.exec(`
  create table notes (
    id int primary key generated always as identity,
    text text not null,
    owner text default current_setting('app.user', true)
  );
  insert into notes (text) values ('first'), ('second');
`);
const server = new PGLiteSocketServer({ db: database, port: 0, host: '127.0.0.1', maxConnections: 10 });
await server.start();
process.env.DATABASE_URL = `postgres://postgres:postgres@${server.getServerConn()}/postgres`;
const { instance } = await exercise('databases', [
  { query: '{ allNotes(first: 1) { nodes { text } totalCount } }' },
  {
    query:
      'mutation ($text: String!) { createNote(input: { note: { text: $text } }) { note { text owner } } }',
    variables: { text: 'third' },
    headers: ada,
  },
]);
await instance.release();

if (process.env.NATS_URL !== undefined) results.events = await exerciseNats();
if (process.env.KAFKA_BROKER !== undefined) results.kafka = await exerciseKafka();

console.log(JSON.stringify(results));
process.exit();
