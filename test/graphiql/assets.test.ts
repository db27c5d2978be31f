/** @tags once */
import { readdirSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { brotliDecompressSync } from 'node:zlib';
import express from 'express';
import { buildSchema } from 'graphql';
import request, { type Test } from 'supertest';
import { graphqlHTTP } from '../../middleware/graphql.ts';

const folder = resolve(__dirname, '../../dist/graphiql');
const manifest = JSON.parse(readFileSync(join(folder, 'manifest.json'), 'utf8'));
const names: string[] = Object.keys(manifest.files);
/** Returns the brotli bytes that the build stored for a file. */
const storedBytes = (name: string): Buffer => Buffer.from(require(join(folder, `${name}.cjs`)), 'base64');
const app = express().use('/graphql', graphqlHTTP(buildSchema('type Query { hello: String }')));

/** The bytes of a response; superagent has decoded them. */
const bytesOf = (path: string, encoding: string) =>
  request(app)
    .get(path)
    .set('accept-encoding', encoding)
    .buffer(true)
    .parse((res, done) => {
      const chunks: Buffer[] = [];
      res.on('data', (chunk) => chunks.push(chunk));
      res.on('end', () => done(null, Buffer.concat(chunks)));
    }) as Test & Promise<{ body: Buffer; headers: Record<string, string> }>;

describe("the page's files", () => {
  it('each file of GraphiQL is a module, and the manifest lists it', () => {
    const files = readdirSync(folder).filter((name) => name.endsWith('.cjs'));
    expect(files.sort()).toEqual([...names.map((name) => `${name}.cjs`), 'index.cjs'].sort());
    for (const name of names) expect(name).toMatch(/-[\w-]{8}\.(?:js|css|ttf)$/);
  });

  it.each(names)('graphqlHTTP serves %s in brotli and decoded, as immutable', async (name) => {
    const stored = storedBytes(name);
    const decoded = brotliDecompressSync(stored);
    const br = await bytesOf(`/graphql/__graphiql/${name}`, 'gzip, deflate, br, zstd');
    expect(br.headers).toMatchObject({
      'content-encoding': 'br',
      'content-length': String(stored.length),
      'cache-control': 'public, max-age=31536000, immutable',
      vary: 'Accept-Encoding',
      'x-content-type-options': 'nosniff',
      'content-security-policy':
        "default-src 'none'; script-src 'self'; connect-src 'self'; frame-ancestors 'none'",
      'content-type': expect.stringMatching(/^(?:text\/(?:javascript|css); charset=utf-8|font\/ttf)$/),
    });
    expect(br.body.equals(decoded)).toBe(true);
    const plain = await bytesOf(`/graphql/__graphiql/${name}`, 'identity');
    expect(plain.headers['content-encoding']).toBeUndefined();
    expect(plain.body.equals(decoded)).toBe(true);
    expect(new Set([br.headers.etag, plain.headers.etag]).size).toBe(2);
  });

  it('graphqlHTTP serves files of GraphiQL in gzip to clients without brotli', async () => {
    const path = `/graphql/__graphiql/${manifest.entry}`;
    const { text, headers } = await request(app).get(path).set('accept-encoding', 'gzip');
    expect(headers['content-encoding']).toBe('gzip');
    expect(text).toBe(brotliDecompressSync(storedBytes(manifest.entry)).toString());
  });

  it('graphqlHTTP responds with 406 to a client that refuses every coding of a GraphiQL file', async () => {
    const path = `/graphql/__graphiql/${manifest.entry}`;
    const refused = await request(app).get(path).set('accept-encoding', 'br;q=0, gzip;q=0, identity;q=0');
    expect([refused.status, refused.headers['vary']]).toEqual([406, 'Accept-Encoding']);
  });

  it('graphqlHTTP responds with 412 if If-Match names another version of a GraphiQL file', async () => {
    await request(app).get(`/graphql/__graphiql/${manifest.entry}`).set('if-match', '"other"').expect(412);
  });

  it('graphqlHTTP sends no body of a GraphiQL file for HEAD and a matching ETag', async () => {
    const path = `/graphql/__graphiql/${manifest.entry}`;
    const { headers } = await request(app).head(path).set('accept-encoding', 'br').expect(200);
    await request(app)
      .get(path)
      .set('accept-encoding', 'br')
      .set('if-none-match', headers.etag ?? '')
      .expect(304);
  });

  it.each([
    'no-such.js',
    'manifest.json',
    'index.cjs',
    'index',
    'THIRD-PARTY-NOTICES.txt',
    '',
    '.',
    '..%2fgraphiql%2fmanifest.json',
    '../manifest.json',
    '%2e%2e/esm/middleware/index.js',
    `${manifest.entry}.cjs`,
    `${manifest.entry}/`.repeat(2),
    '%00',
    '__proto__',
  ])('graphqlHTTP responds with 404 for %s', async (name) => {
    const { status, headers, text } = await request(app)
      .get(`/graphql/__graphiql/${name}`)
      .set('accept', 'text/html');
    expect(status).toBe(404);
    expect(headers['content-type']).toMatch(/^text\/(plain|html); charset=utf-8$/);
    expect(text).not.toContain('graphiql-config');
  });

  it('THIRD-PARTY-NOTICES lists the bundled packages and their licences', () => {
    const notices = readFileSync(join(folder, 'THIRD-PARTY-NOTICES.txt'), 'utf8');
    const inside = Object.values<{ name: string; version: string }>(manifest.packages);
    expect(inside.map(({ name }) => name)).toEqual(
      expect.arrayContaining(['graphiql', 'react', 'react-dom', 'monaco-editor', 'graphql', 'graphql-ws']),
    );
    for (const { name, version } of inside) expect(notices).toContain(`${name} ${version}\n`);
    expect(notices).not.toContain('UNLICENSED');
  });

  it('the files of GraphiQL stay within their size budget', () => {
    const sizes = names.map((name) => storedBytes(name).length);
    expect(sizes.reduce((sum, size) => sum + size, 0)).toBeLessThanOrEqual(1_600_000);
  });
});
