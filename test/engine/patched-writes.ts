// Run by patched-writes.test.ts: a program retains the chunks that responses write, and patched a prototype before espalier loads.
import http, { OutgoingMessage, ServerResponse } from 'node:http';
import { type AddressInfo, Socket } from 'node:net';
import { buildSchema } from 'graphql';

const retained: { readonly chunk: Uint8Array; readonly copy: Buffer }[] = [];
const prototype = process.argv[2] === 'Socket' ? Socket.prototype : ServerResponse.prototype;
const original: unknown =
  process.argv[2] === 'Socket' ? Socket.prototype.write : OutgoingMessage.prototype.write;
Object.assign(prototype, {
  write(this: unknown, chunk: unknown, ...rest: unknown[]): unknown {
    if (chunk instanceof Uint8Array) retained.push({ chunk, copy: Buffer.from(chunk) });
    return Reflect.apply(original as (...args: unknown[]) => unknown, this, [chunk, ...rest]);
  },
});

const { graphqlHTTP } = await import('../../middleware/graphql.ts');
let count = 0;
const schema = buildSchema('type Query { text: String }');
const text = (): string => String(++count).padEnd(100_000, `${count} `);
const server = http.createServer(graphqlHTTP(schema, { graphiql: false, rootValue: { text } }));
await new Promise<void>((resolve) => {
  server.listen(0, '127.0.0.1', resolve);
});
const { port } = server.address() as AddressInfo;
for (let i = 0; i < 20; i++) {
  const response = await fetch(`http://127.0.0.1:${port}/graphql`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: '{"query":"{ text }"}',
  });
  await response.text();
}
server.close();
server.closeAllConnections();
const overwritten = retained.filter(({ chunk, copy }) => !copy.equals(chunk)).length;
const large = retained.filter(({ copy }) => copy.length > 50_000).length;
process.stdout.write(JSON.stringify({ overwritten, large }));
