/** @tags graphql */
import { once } from 'node:events';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { SpanStatusCode } from '@opentelemetry/api';
import express from 'express';
import { buildSchema } from 'graphql';
import { graphqlHTTP } from '../../middleware/graphql.ts';
import { mcp } from '../../middleware/mcp.ts';
import { createServer } from '../../middleware/server.ts';
import {
  activeSpan,
  idOf,
  PHASES,
  parentOf,
  REMOTE_SPAN,
  REMOTE_TRACE,
  TestTelemetry,
  TRACEPARENT,
} from './telemetry.ts';

const schema = buildSchema('type Query { hello: String broken: String }');
const documents = { hello: 'query sayHello { hello }', broken: 'query fail { broken }' };
const seen: (string | undefined)[] = [];
const rootValue = {
  hello: () => {
    seen.push(activeSpan());
    return 'world';
  },
  broken: () => {
    throw new TypeError('secret detail');
  },
};

let telemetry: TestTelemetry;
let server: Server;
let client: Client;

beforeEach(async () => {
  telemetry = new TestTelemetry(PHASES);
  seen.length = 0;
  const handler = graphqlHTTP(schema, {
    rootValue,
    documents: { from: documents },
    usage: {},
    onError: false,
  });
  server = createServer(express().use('/mcp', mcp(handler, { name: 'test', version: '1.0.0' }))).listen(
    0,
    '127.0.0.1',
  );
  await once(server, 'listening');
  const url = new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`);
  // The version of the protocol in which each request names the agent.
  const options = { versionNegotiation: { mode: 'auto' } } as const;
  client = new Client({ name: 'test-agent', version: '3.2.1' }, options);
  await client.connect(
    new StreamableHTTPClientTransport(url, { requestInit: { headers: { traceparent: TRACEPARENT } } }),
  );
});
afterEach(async () => {
  await client.close();
  server.closeAllConnections();
  await new Promise((done) => server.close(done));
  await telemetry.stop();
});

it('the call of a tool is a span of the trace of its request, with the agent as the client', async () => {
  await client.callTool({ name: 'sayHello', arguments: {} });
  const [span, ...more] = await telemetry.wait('query');
  expect(more).toEqual([]);
  expect([span?.spanContext().traceId, parentOf(span)]).toEqual([REMOTE_TRACE, REMOTE_SPAN]);
  expect(span?.attributes).toMatchObject({
    'graphql.operation.name': 'sayHello',
    'graphql.operation.type': 'query',
    'graphql.client.name': 'test-agent',
    'graphql.client.version': '3.2.1',
  });
  expect(span?.status.code).toBe(SpanStatusCode.UNSET);
  const [execution] = telemetry.named('GraphQL Operation Execution');
  expect(parentOf(execution)).toBe(idOf(span));
  expect(seen).toEqual([idOf(execution)]);
});

it('an error of a tool is recorded at its span', async () => {
  const result = await client.callTool({ name: 'fail', arguments: {} });
  expect(result.isError).toBe(true);
  const [span] = await telemetry.wait('query');
  expect(span?.status.code).toBe(SpanStatusCode.ERROR);
  expect(span?.attributes['error.type']).toBe('TypeError');
});
