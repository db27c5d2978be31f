/** @tags once slow */
import { once } from 'node:events';
import { connect } from 'node:net';
import { memoryInUse } from '../heap.ts';
import { serve, sha256 } from './by-id-service.ts';

const HELLO = '{ hello }';
const PIPELINED = 100;
const INHERITED = ['__proto__', 'constructor', 'toString', 'hasOwnProperty', 'valueOf', '__defineGetter__'];

describe('malicious ids', () => {
  it.each([
    ['an object', { abc: HELLO }],
    ['a Map', new Map([['abc', HELLO]])],
    ['a manifest', JSON.parse(`{"abc":"${HELLO}"}`)],
  ])('graphqlHTTP does not find inherited members of %s by id', async (_name, from) => {
    const { post, get } = await serve({ documents: { from, apq: true } });
    for (const id of INHERITED) {
      for (const params of [{ documentId: id }, { id }, { doc_id: id }]) {
        expect([id, (await post(params)).code]).toEqual([id, 'DOCUMENT_NOT_FOUND']);
        expect([id, (await get(params as Record<string, string>)).code]).toEqual([id, 'DOCUMENT_NOT_FOUND']);
      }
      const hash = { extensions: { persistedQuery: { version: 1, sha256Hash: id } } };
      expect([id, (await post(hash)).code]).toEqual([id, 'PERSISTED_QUERY_NOT_FOUND']);
      expect([id, (await post({ query: HELLO, ...hash })).code]).toEqual([
        id,
        'PERSISTED_QUERY_HASH_MISMATCH',
      ]);
    }
  });

  it('graphqlHTTP finds a trusted document whose id is __proto__', async () => {
    const from = JSON.parse('{"__proto__": "{ hello }", "constructor": "{ add(a: 1) }"}');
    const { post } = await serve({ documents: { from } });
    expect((await post({ id: '__proto__' })).body).toEqual({ data: { hello: 'world' } });
    expect((await post({ id: 'constructor' })).body).toEqual({ data: { add: 3 } });
  });

  it('graphqlHTTP ignores ids that a body inherits', async () => {
    const { url } = await serve({ documents: { from: { abc: HELLO } } });
    const response = await fetch(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: '{"__proto__":{"documentId":"abc"},"extensions":{"__proto__":{"persistedQuery":"abc"}}}',
    });
    expect(response.status).toBe(400);
  });

  const count = 5000;

  it(`graphqlHTTP keeps nothing of ${count} unknown ids and hashes`, async () => {
    const { port } = await serve({ documents: { from: { abc: HELLO }, apq: true } });
    const socket = connect(port, '127.0.0.1').setEncoding('latin1');
    await once(socket, 'connect');
    let text = '';
    socket.on('data', (chunk) => (text += chunk));
    const filler = 'x'.repeat(500);
    const paramsOf = (index: number): object => {
      const id = `${index}${filler}`;
      return index % 2 === 0
        ? { documentId: id }
        : { extensions: { persistedQuery: { version: 1, sha256Hash: sha256(id) } } };
    };
    const requestOf = (index: number): string => {
      const body = JSON.stringify(paramsOf(index));
      const head = `Host: localhost\r\nContent-Type: application/json\r\nContent-Length: ${body.length}`;
      return `POST /graphql HTTP/1.1\r\n${head}\r\n\r\n${body}`;
    };
    // Requests are pipelined, since a client of Node takes more time than the server.
    const send = async (first: number, count: number): Promise<void> => {
      for (let index = first; index < first + count; index += PIPELINED) {
        text = '';
        const requests = Array.from({ length: PIPELINED }, (_, offset) => requestOf(index + offset));
        socket.write(requests.join(''));
        const found = (): number =>
          text.match(/"code":"(?:DOCUMENT|PERSISTED_QUERY)_NOT_FOUND"/g)?.length ?? 0;
        while (found() < PIPELINED) await once(socket, 'data');
        expect(text.match(/HTTP\/1\.1 /g)).toHaveLength(PIPELINED);
      }
    };
    await send(0, 2000);
    const before = memoryInUse().heapUsed;
    await send(2000, count);
    // The ids alone have 500 characters each.
    expect(memoryInUse().heapUsed - before).toBeLessThan((count * filler.length) / 4);
    socket.destroy();
  }, 400_000);

  it('graphqlHTTP bounds the memory of registered queries', async () => {
    const { post } = await serve({ documents: { cacheBytes: 400_000, apq: true } });
    const query = (index: number): string => `{ a${index}: hello } #${'x'.repeat(1000)}`;
    const hashOf = (index: number) => ({
      extensions: { persistedQuery: { version: 1, sha256Hash: sha256(query(index)) } },
    });
    for (let index = 0; index < 200; index += 1) await post({ query: query(index), ...hashOf(index) });
    const codes = [];
    for (let index = 0; index < 200; index += 1) codes.push((await post(hashOf(index))).code);
    expect(codes[0]).toBe('PERSISTED_QUERY_NOT_FOUND');
    expect(codes[199]).toBe(undefined);
    expect(codes.filter((code) => code === undefined).length).toBeLessThan(40);
  });
});
