/** @tags node-lines graphql slow */
import { once } from 'node:events';
import { type ClientHttp2Stream, connect } from 'node:http2';
import express from 'express';
import { buildSchema } from 'graphql';
import { graphqlHTTP } from '../../middleware/graphql.ts';
import { createServer } from '../../middleware/server.ts';
import { listen } from '../kit.ts';

const schema = buildSchema('type Query { large: String small: String }');

async function textOf(stream: ClientHttp2Stream): Promise<string> {
  let text = '';
  for await (const chunk of stream.setEncoding('utf8')) text += chunk;
  return text;
}

it.each([
  ['ASCII', 'compiled', 'x'],
  ['other characters', 'compiled', 'ü'],
  ['ASCII', 'graphql-js', 'x'],
] as const)(
  'graphqlHTTP responds to new requests of an HTTP/2 session whose client reads large results of %s slowly (%s)',
  async (_characters, engine, character) => {
    // Eight results take more than the 10 MB of memory that Node grants the streams of a session.
    const large = character.repeat(2_000_000);
    const rootValue = { large, small: 'small' };
    const handler = graphqlHTTP(schema, { rootValue, engine, graphiql: false });
    const { url } = await listen(createServer(express().use(handler), { http2: true }));
    const session = connect(url);
    const request = (query: string): ClientHttp2Stream =>
      session.request({ ':path': `/?query={${query}}`, accept: 'application/json' });
    // The client reads the headers only.
    const results = Array.from({ length: 8 }, () => request('large'));
    await Promise.all(results.map((result) => once(result, 'response')));
    expect(await textOf(request('small'))).toBe('{"data":{"small":"small"}}');
    for (const result of results)
      expect((await textOf(result)) === JSON.stringify({ data: { large } })).toBe(true);
    session.destroy();
  },
);
