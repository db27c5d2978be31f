import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createClient } from 'graphql-ws';
import WebSocket from 'ws';

/** The expected responses of built-server.mjs. */
export const EXPECTED = {
  query: { data: { hello: 'world' } },
  whole: [200, '0123456789'],
  part: [206, '234'],
  unchanged: 304,
  listing: 200,
  mistake: `staticFiles: unknown option "maxage"; use cacheControl: '1h', with a unit`,
  upload: { data: { read: 'some text' } },
  page: [200, 'br', true],
  events: [1, 2, 3],
  stderr: '',
  exit: 0,
};

/** Starts a built server, uses each of its parts, and ends it. */
export async function exercise(command: string, args: string[], cwd: string) {
  const server = spawn(command, args, { cwd, env: { ...process.env, NODE_ENV: 'development' } });
  let stderr = '';
  server.stderr.on('data', (chunk) => {
    stderr += chunk;
  });
  try {
    const port = await Promise.race([
      once(server.stdout, 'data').then(([line]) => Number(line)),
      once(server, 'exit').then(() => Promise.reject(new Error(`the server ended: ${stderr}`))),
    ]);
    const responses = await useAll(`http://127.0.0.1:${port}`);
    server.stdin.end();
    const [exit] = await once(server, 'exit');
    return { ...responses, stderr, exit };
  } finally {
    server.kill('SIGKILL');
  }
}

async function useAll(base: string) {
  const post = (body: string | FormData, headers = {}) =>
    fetch(`${base}/graphql`, { method: 'POST', body, headers }).then((response) => response.json());
  const whole = await fetch(`${base}/static/digits.txt`);
  const etag = String(whole.headers.get('etag'));
  const part = await fetch(`${base}/static/digits.txt`, { headers: { range: 'bytes=2-4' } });
  return {
    query: await (await fetch(`${base}/graphql?query={hello}`)).json(),
    whole: [whole.status, await whole.text()],
    part: [part.status, await part.text()],
    unchanged: (await fetch(`${base}/static/digits.txt`, { headers: { 'if-none-match': etag } })).status,
    listing: (await fetch(`${base}/static/`)).status,
    mistake: (await (await fetch(`${base}/mistake`)).text()).replace(/ \(see .*\)$/, ''),
    upload: await post(uploadForm(), { 'graphql-require-preflight': '1' }),
    page: await visitGraphiQL(`${base}/graphql`),
    events: await receiveEvents(`${base.replace('http', 'ws')}/graphql`, () =>
      post('{"query":"mutation { tick }"}', { 'content-type': 'application/json' }),
    ),
  };
}

function uploadForm(): FormData {
  const form = new FormData();
  const query = 'mutation ($file: Upload) { read(file: $file) }';
  form.set('operations', JSON.stringify({ query, variables: { file: null } }));
  form.set('map', '{ "0": ["variables.file"] }');
  form.set('0', new Blob(['some text']), 'note.txt');
  return form;
}

/** Loads the page and its first script, as a browser does. */
async function visitGraphiQL(url: string) {
  const page = await (await fetch(url, { headers: { accept: 'text/html' } })).text();
  const file = new URL(String(/src="([^"]+)"/.exec(page)?.[1]), url);
  const script = await fetch(file, { headers: { 'accept-encoding': 'br' } });
  return [script.status, script.headers.get('content-encoding'), (await script.text()).includes('import')];
}

async function receiveEvents(url: string, publish: () => Promise<unknown>): Promise<unknown[]> {
  const client = createClient({ url, webSocketImpl: WebSocket, retryAttempts: 0, lazy: false });
  const stream = client.iterate({ query: 'subscription { tick }' });
  const first = stream.next();
  // The server has the subscription when it responds to an operation that the client sent afterwards.
  for await (const _result of client.iterate({ query: '{ hello }' }));
  await publish();
  const events = [await first, await stream.next(), await stream.next()];
  await client.dispose();
  return events.map(({ value }) => value?.data?.['tick']);
}
