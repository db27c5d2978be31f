/** @tags graphql engine */
import { once } from 'node:events';
import type { ContextSource } from '../../types/connect.ts';
import { until } from '../until.ts';
import { type Service, serve } from './service.ts';

const PAY =
  'mutation ($key: String!, $amount: Int!) { pay(amount: $amount) @idempotent(key: $key) { id amount } }';
const pay = (service: Service, key: string, amount = 5, headers = {}) =>
  service.post({ query: PAY, variables: { key, amount } }, headers);

describe.each(['compiled', 'graphql-js'] as const)('with the engine %s', (engine) => {
  const start = (idempotency = {}, options = {}) => serve(idempotency, { engine, ...options });

  it('a mutation with a key is executed once, and its repetition gets the stored result', async () => {
    const service = await start();
    const first = await pay(service, 'a');
    const second = await pay(service, 'a');
    expect([first.status, first.replayed, first.data]).toEqual([200, false, { pay: { id: '1', amount: 5 } }]);
    expect([second.status, second.replayed, second.body]).toEqual([200, true, first.body]);
    expect((await pay(service, 'b')).data).toEqual({ pay: { id: '2', amount: 5 } });
    expect(service.effects.count).toBe(2);
  });

  it('a key that is used with other variables, another selection or another document is refused with 422', async () => {
    const service = await start();
    await pay(service, 'a');
    const other = await pay(service, 'a', 6);
    expect([other.status, other.codes]).toEqual([422, ['IDEMPOTENCY_KEY_REUSED']]);
    const query = PAY.replace('id amount', 'id');
    expect((await service.post({ query, variables: { key: 'a', amount: 5 } })).status).toBe(422);
    const spaced = PAY.replace('id amount', 'id\n\n amount # again\n');
    expect((await service.post({ query: spaced, variables: { amount: 5, key: 'a' } })).replayed).toBe(true);
    expect(service.effects.count).toBe(1);
  });

  it('users and fields have their own keys', async () => {
    const service = await start();
    await pay(service, 'a', 5, { 'x-user': 'one' });
    await pay(service, 'a', 7, { 'x-user': 'two' });
    await service.post(
      { query: PAY.replace('pay', 'refund'), variables: { key: 'a', amount: 5 } },
      { 'x-user': 'one' },
    );
    expect(service.effects.count).toBe(3);
    expect((await pay(service, 'a', 7, { 'x-user': 'two' })).replayed).toBe(true);
  });

  it('the users of the option idempotency.user have their own keys, whoever is the caller', async () => {
    const user = (_source: unknown, context: unknown) => Object(context).company ?? null;
    const context = ({ headers }: ContextSource) => ({ company: headers['x-company'] });
    const service = await start({ user }, { context });
    await pay(service, 'a', 5, { 'x-user': 'one', 'x-company': 'acme' });
    expect((await pay(service, 'a', 5, { 'x-user': 'two', 'x-company': 'acme' })).replayed).toBe(true);
    expect((await pay(service, 'a', 5, { 'x-user': 'one', 'x-company': 'other' })).replayed).toBe(false);
    expect((await pay(service, 'a', 5, { 'x-user': 'one' })).replayed).toBe(false);
    expect((await pay(service, 'a', 5, { 'x-user': 'two' })).replayed).toBe(true);
    expect(service.effects.count).toBe(3);
  });

  it.each([[() => 5], [() => ({})], [async () => 'ada']])(
    'a function idempotency.user that returns a wrong value executes nothing, and is reported',
    async (user) => {
      const service = await start({ user });
      const { status, codes } = await pay(service, 'a');
      expect([status, codes, service.effects.count]).toEqual([500, ['INTERNAL_SERVER_ERROR'], 0]);
      expect(String(service.reports)).toContain('option "idempotency.user" returned');
    },
  );

  it('the header Idempotency-Key is the key of all fields of an operation', async () => {
    const service = await start();
    const query = 'mutation { a: pay(amount: 1) { id } b: pay(amount: 2) { id } }';
    const headers = { 'idempotency-key': '"8e03978e"' };
    const first = await service.post({ query }, headers);
    expect(first.data).toEqual({ a: { id: '1' }, b: { id: '2' } });
    const second = await service.post({ query }, { 'idempotency-key': '8e03978e' });
    expect([second.replayed, second.body]).toEqual([true, first.body]);
    const renamed = await service.post({ query: query.replace('a:', 'c:') }, headers);
    expect(renamed.status).toBe(422);
    expect(service.effects.count).toBe(2);
  });

  it('a key covers the other fields of its operation too, and a second key is refused with 400', async () => {
    const service = await start();
    const field = (alias: string, key: string) =>
      `${alias}: pay(amount: 1) @idempotent(key: "${key}") { id }`;
    const query = `mutation { b: refund(amount: 2) { id } ${field('a', 'x')} __typename }`;
    const first = await service.post({ query });
    expect(first.data).toEqual({ b: { id: '1' }, a: { id: '2' }, __typename: 'Mutation' });
    const second = await service.post({ query });
    expect([second.replayed, second.body]).toEqual([true, first.body]);
    expect((await service.post({ query: `mutation { ${field('a', 'x')} }` })).status).toBe(422);
    for (const key of ['y', 'z']) {
      const both = await service.post({ query: `mutation { ${field('a', 'z')} ${field('b', key)} }` });
      expect([both.status, both.codes]).toEqual([400, ['IDEMPOTENCY_KEY_INVALID']]);
      expect(both.body).toContain('one operation for each key');
    }
    expect(service.effects.count).toBe(2);
  });

  it('a failed field of several ends the operation as without keys', async () => {
    const service = await start();
    const query = (key: string) =>
      `mutation { a: refund(amount: 1) { amount } b: fail { id } c: refund(amount: 3) ${key} { amount } }`;
    const plain = await service.post({ query: query('') });
    const keyed = await service.post({ query: query('@idempotent(key: "k1")') });
    expect(keyed.body).toBe(plain.body);
  });

  it('errors are stored: those for the client with their status and headers, and unexpected ones masked', async () => {
    const service = await start();
    const query = (kind: string) => `mutation { fail(kind: "${kind}") @idempotent(key: "${kind}") { id } }`;
    const first = await service.post({ query: query('funds') });
    const second = await service.post({ query: query('funds') });
    expect([first.status, first.headers.get('x-reason'), first.codes]).toEqual([402, 'funds', ['FUNDS']]);
    expect([second.status, second.headers.get('x-reason'), second.body]).toEqual([402, 'funds', first.body]);
    expect(second.replayed).toBe(true);
    const bug = await service.post({ query: query('bug') });
    expect(bug.codes).toEqual(['INTERNAL_SERVER_ERROR']);
    expect((await service.post({ query: query('bug') })).body).toBe(bug.body);
    expect(service.reports.map(String)).toEqual(['Error: secret']);
    expect(service.effects.failures).toBe(2);
  });

  it('a refused request does not use its key', async () => {
    const service = await start();
    expect((await service.post({ query: PAY, variables: { key: 'a', amount: 'x' } })).data).toBeUndefined();
    expect((await service.post({ query: '{ count @idempotent(key: "a") }' })).codes).toEqual([
      'GRAPHQL_VALIDATION_FAILED',
    ]);
    expect((await pay(service, 'a')).replayed).toBe(false);
    expect(service.effects.count).toBe(1);
  });

  it('a field that @skip excludes takes no key', async () => {
    const service = await start();
    const query = `mutation ($skip: Boolean!) { ...F @skip(if: $skip) __typename }
      fragment F on Mutation { pay(amount: 1) @idempotent(key: "k") { id } }`;
    expect((await service.post({ query, variables: { skip: true } })).data).toEqual({
      __typename: 'Mutation',
    });
    expect((await service.post({ query, variables: { skip: false } })).data).toMatchObject({
      pay: { id: '1' },
    });
    expect((await service.post({ query, variables: { skip: false } })).replayed).toBe(true);
  });

  it('required fields without a key are refused with 400', async () => {
    const service = await start({ required: ['pay'] });
    const query = 'mutation { pay(amount: 1) { id } }';
    const refused = await service.post({ query });
    expect([refused.status, refused.codes]).toEqual([400, ['IDEMPOTENCY_KEY_REQUIRED']]);
    expect((await service.post({ query }, { 'idempotency-key': 'a' })).status).toBe(200);
    expect((await service.post({ query: query.replace('pay', 'refund') })).status).toBe(200);
    for (const key of ['', 'a b', 'ä', 'x'.repeat(256)]) {
      const wrong = await pay(service, key);
      expect([wrong.status, wrong.codes]).toEqual([400, ['IDEMPOTENCY_KEY_INVALID']]);
    }
  });

  it('a concurrent repetition waits for the first result', async () => {
    const service = await start();
    service.effects.isGated = true;
    const first = pay(service, 'a');
    await until(() => service.effects.waiting === 1);
    const second = pay(service, 'a');
    service.effects.open();
    expect([(await first).replayed, (await second).replayed]).toEqual([false, true]);
    expect(service.effects.count).toBe(1);
  });

  it('a repetition that waits too long is refused with 409 and Retry-After', async () => {
    const service = await start({ wait: 0 });
    service.effects.isGated = true;
    const first = pay(service, 'a');
    await until(() => service.effects.waiting === 1);
    const second = await pay(service, 'a');
    expect([second.status, second.codes, second.headers.get('retry-after')]).toEqual([
      409,
      ['IDEMPOTENCY_IN_PROGRESS'],
      '1',
    ]);
    service.effects.open();
    expect((await first).status).toBe(200);
    expect((await pay(service, 'a')).replayed).toBe(true);
  });

  it('a mutation whose client disconnects is finished, and its result is stored', async () => {
    const service = await start();
    service.effects.isGated = true;
    const aborted = new AbortController();
    const sent = fetch(service.url, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ query: PAY, variables: { key: 'a', amount: 5 } }),
      signal: aborted.signal,
    });
    await until(() => service.effects.waiting === 1);
    aborted.abort();
    await expect(sent).rejects.toThrow();
    const second = pay(service, 'a');
    service.effects.open();
    expect([(await second).replayed, (await second).data]).toEqual([true, { pay: { id: '1', amount: 5 } }]);
    expect(service.effects.count).toBe(1);
  });

  it('an error after the client has disconnected is reported', async () => {
    const service = await start();
    service.effects.isGated = true;
    const aborted = new AbortController();
    const query = PAY.replace('id amount', 'bug');
    const sent = fetch(service.url, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ query, variables: { key: 'a', amount: 5 } }),
      signal: aborted.signal,
    });
    const closed = once(service.server, 'connection').then(([socket]) => once(socket, 'close'));
    await until(() => service.effects.waiting === 1);
    aborted.abort();
    await expect(sent).rejects.toThrow();
    await closed;
    service.effects.open();
    await until(() => service.reports.length === 1);
    expect(service.reports).toMatchObject([{ message: 'a bug' }]);
  });

  it('a mutation that exceeds the timeout is finished, and a repetition gets its result', async () => {
    const service = await start({}, { timeout: 50 });
    service.effects.isGated = true;
    const late = await pay(service, 'a');
    expect([late.data, late.codes]).toEqual([undefined, ['OPERATION_TIMEOUT']]);
    service.effects.open();
    const second = await pay(service, 'a');
    expect([second.replayed, second.data]).toEqual([true, { pay: { id: '1', amount: 5 } }]);
    expect(service.effects.count).toBe(1);
  });

  const formOf = (content: string): FormData => {
    const form = new FormData();
    const query = 'mutation ($file: Upload!) { store(file: $file) @idempotent(key: "f") }';
    form.append('operations', JSON.stringify({ query, variables: { file: null } }));
    form.append('map', JSON.stringify({ 0: ['variables.file'] }));
    form.append('0', new File([content], 'a.txt', { type: 'text/plain' }));
    return form;
  };

  it.each(['in memory', 'on disk'])(
    'a mutation with a file %s is finished when its client disconnects',
    async (place) => {
      const uploads = place === 'on disk' ? { memoryBytes: 0 } : {};
      const service = await start({}, { uploads });
      service.effects.isGated = true;
      const closed = once(service.server, 'request').then(([, res]) => once(res, 'close'));
      const aborted = new AbortController();
      const headers = { 'x-requested-with': 'test' };
      const sent = fetch(service.url, {
        method: 'POST',
        headers,
        body: formOf('one'),
        signal: aborted.signal,
      });
      await until(() => service.effects.waiting === 1);
      aborted.abort();
      await expect(sent).rejects.toThrow();
      await closed;
      service.effects.open();
      const second = await service.post(formOf('one'));
      expect([second.replayed, second.data, service.reports]).toEqual([true, { store: 'one' }, []]);
      expect(service.effects.count).toBe(1);
    },
  );

  it('the contents of files count', async () => {
    const service = await start();
    const send = (content: string) => service.post(formOf(content));
    expect((await send('one')).data).toEqual({ store: 'one' });
    expect((await send('one')).replayed).toBe(true);
    expect((await send('two')).status).toBe(422);
    expect(service.effects.count).toBe(1);
  });

  it('each mutation of a batch has its own key, from the header too', async () => {
    const service = await start({}, { batching: true });
    const query = 'mutation { pay(amount: 1) { id } }';
    const batch = [
      { query },
      { query },
      {
        query: PAY,
        variables: [
          { key: 'a', amount: 1 },
          { key: 'b', amount: 1 },
        ],
      },
    ];
    const first = await service.post(batch, { 'idempotency-key': 'h' });
    const second = await service.post(batch, { 'idempotency-key': 'h' });
    expect([first.replayed, second.replayed, second.body]).toEqual([false, true, first.body]);
    expect(service.effects.count).toBe(4);
  });
});

it('keys in the memory of a process are a warning in production, once', async () => {
  const { NODE_ENV } = process.env;
  const warned = jest.spyOn(console, 'warn').mockImplementation();
  process.env['NODE_ENV'] = 'production';
  await serve();
  await serve();
  process.env['NODE_ENV'] = NODE_ENV;
  const about = warned.mock.calls.flat().filter((text) => String(text).includes('"idempotency"'));
  expect(about).toEqual([expect.stringContaining('Set "idempotency.redis" to a Redis')]);
  warned.mockRestore();
});
