/** @tags node graphql */
import { runInNewContext } from 'node:vm';
import { buildSchema } from 'graphql';
import { graphqlHTTP } from '../../middleware/graphql.ts';
import { memoryFiles } from '../../middleware/sources.ts';
import { staticFiles } from '../../middleware/static.ts';
import { inject } from '../../middleware/testing.ts';
import type { SubscriptionOptions } from '../../types/subscriptions.ts';
import { connect, handshake } from '../live/client.ts';
import { serve } from '../live/serve.ts';

// Values of another JavaScript context, as `node:vm` and test runners create them: `instanceof` does not recognise
// them. Nor does it recognise the thenables of promise libraries.

const foreign = <T>(code: string): T => runInNewContext(code) as T;

interface Rejecting {
  readonly name: string;
  readonly reject: () => unknown;
}

const REJECTING: readonly Rejecting[] = [
  {
    name: 'a promise of another context',
    reject: foreign('async () => { throw Object.assign(new Error("broken"), { status: 403 }) }'),
  },
  {
    name: 'a thenable of a library',
    reject: () => {
      const failed = Promise.reject(Object.assign(new Error('broken'), { status: 403 }));
      // biome-ignore lint/suspicious/noThenProperty: the promise of a library
      return { then: failed.then.bind(failed) };
    },
  },
];

describe.each(REJECTING)('$name that rejects', ({ reject }) => {
  it('middleware of the upgrade refuses with the status of the error', async () => {
    const middleware = [reject as () => Promise<void>];
    const { port } = await serve({ middleware, limits: { initTimeout: 500 } });
    expect(await handshake(port, '/graphql')).toMatchObject({ status: 403, body: 'Forbidden\n' });
  });

  it('when onError returns it, the failure is logged and no rejection is unhandled', async () => {
    const logged = jest.spyOn(console, 'error').mockImplementation();
    const schema = buildSchema('type Query { crashes: Int }');
    const rootValue = {
      crashes: () => {
        throw new Error('crashed');
      },
    };
    const handler = graphqlHTTP(schema, { rootValue, onError: reject as () => void });
    await inject(handler, { query: '{ crashes }' });
    await new Promise(setImmediate);
    expect(logged.mock.calls).toEqual([
      [expect.stringContaining('unexpected error'), expect.objectContaining({ message: 'crashed' })],
      ['espalier: the option "onError" failed:', expect.objectContaining({ message: 'broken' })],
    ]);
    logged.mockRestore();
  });
});

describe('values of another context', () => {
  it('onConnect may return a Date of another context as expiresAt', async () => {
    const onConnect = foreign<NonNullable<SubscriptionOptions['onConnect']>>(
      '() => ({ expiresAt: new Date(Date.now() + 60_000) })',
    );
    const { url } = await serve({ onConnect });
    const client = await connect(url);
    client.send({ type: 'connection_init' });
    expect(await client.next()).toEqual({ type: 'connection_ack' });
  });

  it('documents.from may be a Map of another context', async () => {
    const from = foreign<Map<string, string>>('new Map([["abc", "{ hello }"]])');
    const schema = buildSchema('type Query { hello: String }');
    const handler = graphqlHTTP(schema, { rootValue: { hello: 'world' }, documents: { from } });
    const response = await inject(handler, { path: '/?documentId=abc' });
    expect(response.body.toString()).toBe('{"data":{"hello":"world"}}');
  });

  it('memoryFiles accepts a Uint8Array of another context', async () => {
    const files = memoryFiles({ 'a.txt': foreign<Uint8Array>('new Uint8Array([104, 105])') });
    expect(await inject(staticFiles(files), { path: '/a.txt' })).toMatchObject({ status: 200 });
  });

  it('cursors.key may be a Uint8Array of another context', () => {
    const schema = buildSchema('type Query { hello: String }');
    const key = foreign<Uint8Array>('new Uint8Array(32).fill(7)');
    expect(() => graphqlHTTP(schema, { cursors: { key } })).not.toThrow();
  });
});
