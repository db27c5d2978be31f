/** @tags once slow */
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { request } from 'node:http';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { listen } from '../kit.ts';
import { type RawClient, ready } from '../live/client.ts';
import { needs } from '../programs.ts';
import { startRedis } from '../redis.ts';
import { failExample, type Running, startExample, stopExamples } from './start.ts';

const folder = mkdtempSync(join(tmpdir(), 'photo-wall-'));
const temporary = join(folder, 'tmp');
const data = join(folder, 'data');
const picture = readFileSync(resolve(__dirname, '../../examples/photo-wall/pictures/hills-in-may.png'));
const query = 'mutation ($file: Upload!) { addPhoto(file: $file) { id title url width height bytes } }';

let wall: Running;
beforeAll(async () => {
  mkdirSync(temporary);
  wall = await startExample('photo-wall/server', { DATA_DIR: data, TMPDIR: temporary });
});
afterAll(async () => {
  await stopExamples();
  rmSync(folder, { recursive: true, force: true });
});

interface Result {
  data?: { addPhoto?: Record<string, unknown>; photos?: { title: string }[] } | null;
  errors?: { message: string; extensions?: Record<string, unknown> }[];
}

const kept = () => ['pictures', 'photos'].map((name) => readdirSync(join(data, name)).length);
/** tsx keeps its own cache there. */
const leftovers = () => readdirSync(temporary).filter((name) => !name.startsWith('tsx-'));

function formOf(name: string, content: Uint8Array<ArrayBuffer>, type: string): FormData {
  const form = new FormData();
  form.append('operations', JSON.stringify({ query, variables: { file: null } }));
  form.append('map', '{"0":["variables.file"]}');
  form.append('0', new Blob([content], { type }), name);
  return form;
}

async function add({ url }: Running, name: string, content: Buffer, type = 'image/png') {
  const body = formOf(name, new Uint8Array(content), type);
  const response = await fetch(`${url}/graphql`, { method: 'POST', body });
  return { status: response.status, ...((await response.json()) as Result) };
}

async function titles({ url }: Running): Promise<string[]> {
  const response = await fetch(`${url}/graphql?query={photos{title}}`);
  const { data } = (await response.json()) as Result;
  return (data?.photos ?? []).map(({ title }) => title);
}

describe('the server of the photo wall', () => {
  it('the photo wall stores a picture and serves it as immutable under a strict Content-Security-Policy', async () => {
    const { data } = await add(wall, 'a walk.png', picture);
    expect(data?.addPhoto).toMatchObject({
      title: 'A walk',
      width: 864,
      height: 1080,
      bytes: picture.length,
    });
    const response = await fetch(wall.url + data?.addPhoto?.url);
    expect(Buffer.from(await response.arrayBuffer()).equals(picture)).toBe(true);
    expect(Object.fromEntries(response.headers)).toMatchObject({
      'content-type': 'image/png',
      'cache-control': 'public, max-age=31536000, immutable',
      'content-security-policy': "sandbox; default-src 'none'",
      'x-content-type-options': 'nosniff',
    });
  });

  it('the photo wall takes a picture from a plain form', async () => {
    const form = new FormData();
    form.set('photo', new Blob([new Uint8Array(picture)]), 'by form.png');
    const added = await fetch(`${wall.url}/photos`, { method: 'POST', body: form, redirect: 'manual' });
    expect([added.status, added.headers.get('location')]).toEqual([
      303,
      expect.stringMatching(/^\/uploads\/\S+\.png$/),
    ]);
    form.set('photo', new Blob(['<script>']), 'by form.png');
    const refused = await fetch(`${wall.url}/photos`, { method: 'POST', body: form });
    expect([refused.status, await refused.text()]).toEqual([415, expect.stringMatching(/no known type/)]);
    form.set('photo', new Blob([new Uint8Array(picture.subarray(0, 30_000))]), 'by form.png');
    const torn = await fetch(`${wall.url}/photos`, { method: 'POST', body: form });
    expect([torn.status, await torn.text()]).toEqual([415, 'The picture is damaged or not complete.']);
    expect((await titles(wall))[0]).toBe('By form');
  });

  it('a picture that is not on the wall is served only by its link, and its file is deleted after a day', async () => {
    const before = await titles(wall);
    const form = new FormData();
    form.set('for', 'link');
    form.set('photo', new Blob([new Uint8Array(picture)]), 'secret.png');
    const share = () => fetch(`${wall.url}/photos`, { method: 'POST', body: form, redirect: 'manual' });
    const link = (await share()).headers.get('location') as string;
    const [path, name] = /^\/unlisted\/(\w+\.png)(?=\?)/.exec(link) ?? [];
    const response = await fetch(wall.url + link);
    expect(Buffer.from(await response.arrayBuffer()).equals(picture)).toBe(true);
    expect(response.headers.get('cache-control')).toMatch(/^private\b/);
    expect((await fetch(wall.url + path)).status).toBe(403);
    expect((await fetch(`${wall.url}/uploads/${name}`)).status).toBe(404);
    expect(await titles(wall)).toEqual(before);
    const file = join(data, 'unlisted', name as string);
    const yesterday = Date.now() / 1000 - 25 * 3600;
    utimesSync(file, yesterday, yesterday);
    await share();
    expect(existsSync(file)).toBe(false);
  });

  it.each([
    ['a text', 'Just words, no pixels, though the name says otherwise.', 'image/png'],
    ['a page', `<!doctype html><script>alert(1)</script>${' '.repeat(50)}`, 'image/png'],
    ['a drawing', `<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>`, 'image/svg+xml'],
    ['an empty file', '', 'image/png'],
  ])('the photo wall refuses %s that is sent as a picture', async (_what, content, type) => {
    const before = kept();
    const { errors } = await add(wall, 'trust me.png', Buffer.from(content), type);
    expect(errors?.[0]).toMatchObject({
      message: 'This file is not a PNG, JPEG, GIF, WebP or AVIF picture.',
      extensions: { code: 'NOT_A_PICTURE' },
    });
    expect([kept(), leftovers()]).toEqual([before, []]);
  });

  it('the photo wall refuses a truncated picture', async () => {
    const before = kept();
    const { errors } = await add(wall, 'torn.png', picture.subarray(0, 30_000));
    expect(errors?.[0]?.message).toBe('The picture is damaged or not complete.');
    expect(kept()).toEqual(before);
  });

  it('the photo wall refuses an upload of 30 MB with 413 and stores nothing', async () => {
    const before = kept();
    const { status, errors } = await add(wall, 'huge.png', Buffer.concat([picture, Buffer.alloc(30 << 20)]));
    expect(status).toBe(413);
    expect(errors?.[0]?.message).toMatch(/is larger than \d+ bytes/);
    expect([kept(), leftovers()]).toEqual([before, []]);
    expect(await titles(wall)).toHaveLength(before[0] as number);
  });

  it('the photo wall stores nothing of an aborted upload', async () => {
    const before = kept();
    const body = new Response(formOf('aborted.png', new Uint8Array(picture), 'image/png'));
    const headers = { 'content-type': body.headers.get('content-type') as string, 'content-length': 150_000 };
    const sending = request(`${wall.url}/graphql`, { method: 'POST', headers });
    sending.on('error', () => undefined);
    const start = Buffer.from(await body.arrayBuffer()).subarray(0, 60_000);
    await new Promise((sent) => sending.write(start, sent));
    sending.destroy();
    expect((await add(wall, 'next.png', picture)).data?.addPhoto).toMatchObject({ title: 'Next' });
    expect([kept(), leftovers()]).toEqual([before.map((count) => count + 1), []]);
  });

  it.each(['..%2f..%2fstore.ts', '%00.png', 'photos'])(
    'the photo wall sends 404 for /uploads/%s',
    async (path) => {
      expect((await fetch(`${wall.url}/uploads/${path}`)).status).toBe(404);
    },
  );

  it('the photo wall exits with 0 on SIGINT and has its pictures after a restart', async () => {
    await add(wall, 'kept.png', picture);
    const before = await titles(wall);
    expect(await wall.stop('SIGINT')).toBe(0);
    wall = await startExample('photo-wall/server', { DATA_DIR: data, TMPDIR: temporary });
    expect(await titles(wall)).toEqual(before);
    expect(before).toEqual(expect.arrayContaining(['Northern lights', 'Kept']));
  });
});

describe('a photo wall that fails to start', () => {
  it('the photo wall reports a port in use and the command for another port', async () => {
    const { port } = await listen(createServer());
    const { code, output } = await failExample('photo-wall/server', { DATA_DIR: data, PORT: `${port}` });
    expect(output).toBe(
      `photo wall: port ${port} is in use; choose another one with PORT=${port + 1} npm start\n`,
    );
    expect(code).toBe(1);
  });

  it('the photo wall reports a PORT that is not a number', async () => {
    const { code, output } = await failExample('photo-wall/server', { DATA_DIR: data, PORT: 'http' });
    expect([code, output]).toEqual([1, 'photo wall: PORT is "http"; expected a number from 0 to 65535\n']);
  });

  it('the photo wall reports a DATA_DIR that it cannot write to', async () => {
    const file = join(folder, 'a file');
    writeFileSync(file, '');
    const { code, output } = await failExample('photo-wall/server', { DATA_DIR: file, PORT: '0' });
    expect(output).toContain(`photo wall: the pictures cannot be kept in ${file}: `);
    expect(code).toBe(1);
  });
});

needs('redis-server').describe('photo walls in several processes with one Redis', () => {
  it('photo walls in several processes show the pictures of each other, with equal ETags for equal bytes', async () => {
    const redis = await startRedis();
    const env = { DATA_DIR: data, REDIS_URL: redis.url };
    // The third serves from a copy of the folder, like another host with its own disk.
    const copy = join(folder, 'copy');
    cpSync(data, copy, { recursive: true });
    const [one, two, elsewhere] = await Promise.all(
      [env, env, { ...env, DATA_DIR: copy }].map((each) => startExample('photo-wall/server', each)),
    );
    const walls = [one, two, elsewhere] as [Running, Running, Running];
    const watching = await Promise.all(walls.map(watch));
    const admin = new Redis(redis.url);
    while ((await admin.pubsub('NUMSUB', 'photo-wall:photoAdded'))[1] !== 3) await setImmediate();
    await admin.quit();
    const added = await add(walls[0], 'from one.png', picture);
    for (const watcher of watching) {
      expect(await watcher.next()).toMatchObject({
        payload: { data: { photoAdded: { title: 'From one' } } },
      });
      await watcher.close();
    }
    const path = added.data?.addPhoto?.url as string;
    cpSync(join(data, 'pictures'), join(copy, 'pictures'), { recursive: true });
    const responses = await Promise.all(walls.map(({ url }) => fetch(url + path)));
    const tags = new Set(responses.map(({ headers }) => headers.get('etag')));
    expect(tags.size).toBe(1);
    const [tag] = tags;
    for (const { url } of walls) {
      const again = await fetch(url + path, { headers: { 'if-none-match': tag as string } });
      expect(again.status).toBe(304);
    }
    expect(await Promise.all(walls.map((each) => each.stop()))).toEqual([0, 0, 0]);
    await redis.kill();
  });
});

async function watch({ url }: Running): Promise<RawClient> {
  const client = await ready(`${url.replace('http', 'ws')}/graphql`);
  client.send({ id: '1', type: 'subscribe', payload: { query: 'subscription { photoAdded { title } }' } });
  return client;
}
