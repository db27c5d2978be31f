import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, beforeEach, test } from 'node:test';
import { inject, subscribe } from 'espalier/testing';
import { createApi } from '../server/app.ts';

const dataDir = mkdtempSync(join(tmpdir(), 'starter-'));
let api: ReturnType<typeof createApi>;

beforeEach(() => {
  api = createApi({ dataDir });
});

after(() => rmSync(dataDir, { recursive: true }));

const ADD = `mutation ($name: String!, $text: String!, $picture: Upload) {
  addMessage(name: $name, text: $text, picture: $picture) { text picture author { name } }
}`;
const PNG = Buffer.from('89504e470d0a1a0a', 'hex');

test('messages are returned newest first, with their authors', async () => {
  for (const text of ['first', 'second'])
    await inject(api.server, { query: ADD, variables: { name: 'Ada', text } });
  const { data } = await inject(api.server, { query: '{ messages { text author { name } } }' });
  assert.deepEqual(data, {
    messages: [
      { text: 'second', author: { name: 'Ada' } },
      { text: 'first', author: { name: 'Ada' } },
    ],
  });
});

test('a picture is stored and served', async () => {
  const picture = new File([PNG], 'me.png', { type: 'image/png' });
  const { data } = await inject<{ addMessage: { picture: string } }>(api.server, {
    query: ADD,
    variables: { name: 'Ada', text: 'Me', picture },
  });
  const { status, headers, body } = await inject(api.server, { path: data?.addMessage.picture });
  assert.deepEqual([status, headers['content-type'], body], [200, 'image/png', PNG]);
});

test('a file that is not a picture is refused', async () => {
  const picture = new File(['<script>'], 'me.png', { type: 'image/png' });
  const { errors } = await inject(api.server, {
    query: ADD,
    variables: { name: 'Ada', text: 'Me', picture },
  });
  assert.equal(errors?.[0]?.message, 'The picture must be a PNG, JPEG or WebP file');
});

test('a subscription gets each new message', async () => {
  const results = await subscribe(api.server, {
    query: 'subscription { messageAdded { text author { name } } }',
  });
  await inject(api.server, { query: ADD, variables: { name: 'Ada', text: 'live' } });
  const { value } = await results.next();
  assert.deepEqual(value?.data, { messageAdded: { text: 'live', author: { name: 'Ada' } } });
  await results.return();
});

test('the server is ready until it stops', async () => {
  const statusOf = async (path: string) => (await inject(api.server, { path })).status;
  api.server.listen(0, '127.0.0.1');
  await api.server.ready();
  assert.deepEqual([await statusOf('/health/live'), await statusOf('/health/ready')], [200, 200]);
  await api.stop();
  assert.deepEqual([await statusOf('/health/live'), await statusOf('/health/ready')], [503, 503]);
});
