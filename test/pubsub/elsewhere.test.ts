/** @tags once slow */
// The programs of docs/redis.md that publish events from elsewhere.
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { makeFolder } from '../kit.ts';
import { needs } from '../programs.ts';
import { take } from './events.ts';
import { useRedis } from './use-redis.ts';

const run = promisify(execFile);
const page = readFileSync(join(__dirname, '../../docs/redis.md'), 'utf8');
const blocks = [...page.slice(page.indexOf('## Publish from')).matchAll(/```(\w+)\n([\s\S]*?)```/g)];
const shown = (language: string, index = 0): string =>
  blocks.filter(([, name]) => name === language)[index]?.[2] ?? '';

/** What the example takes from the package `redis`, which this machine need not have. */
const PACKAGE = `
import socket
from urllib.parse import urlparse

class Redis:
    @staticmethod
    def from_url(url):
        client = Redis()
        client.socket = socket.create_connection((urlparse(url).hostname, urlparse(url).port))
        client.file = client.socket.makefile("rb")
        return client

    def eval(self, *words):
        words = [str(word).encode() for word in ("EVAL", *words)]
        parts = [b"*%d\\r\\n" % len(words)] + [b"$%d\\r\\n%s\\r\\n" % (len(word), word) for word in words]
        self.socket.sendall(b"".join(parts))
        head = self.file.readline()
        if head[:1] != b"$":
            raise Exception(head.decode())
        return self.file.read(int(head[1:]) + 2)[:-2]
`;

interface Events {
  said: { said: string };
}
const fixture = useRedis<Events>();

const publishShown = (topic: string): Promise<unknown> => {
  const words = ['-p', `${fixture.redis.port}`, 'PUBLISH', `espalier:${topic}`, '{"said":"hi"}'];
  expect(shown('sh')).toBe(`redis-cli PUBLISH espalier:said '{"said":"hi"}'\n`);
  return run('redis-cli', words);
};

it('a message of redis-cli is an event of a pubsub without a history', async () => {
  const events = fixture.connect({ redis: fixture.redis.url });
  const stream = events.subscribe('said');
  await events.ready('said');
  await publishShown('said');
  expect(await take(stream, 1)).toEqual([{ said: 'hi' }]);
});

needs('python3').it('events of a program in Python and of this process are one history', async () => {
  const folder = makeFolder({
    'publish.lua': shown('lua'),
    'events.py': shown('python'),
    'redis.py': PACKAGE,
    'run.py': `import sys
from events import Events
events = Events(sys.argv[1], length=100)
for number in range(int(sys.argv[2]), int(sys.argv[3])):
    events.publish("said", {"said": "é %d" % number})
`,
  });
  const publish = (from: number, to: number) =>
    run('python3', ['run.py', fixture.redis.url, `${from}`, `${to}`], { cwd: folder });
  const onError = jest.fn();
  const events = fixture.connect({ redis: fixture.redis.url, history: { length: 100 }, onError });
  const stream = events.subscribe('said');
  await events.ready('said');
  await publish(0, 2);
  await events.publish('said', { said: 'here' });
  await publish(2, 3);
  const seen = await take(stream, 4);
  expect(seen).toEqual([{ said: 'é 0' }, { said: 'é 1' }, { said: 'here' }, { said: 'é 2' }]);
  const resumed = events.subscribe('said', { after: stream.startCursor ?? '' });
  expect(await take(resumed, 4)).toEqual(seen);
  // The first event of a topic may be one of elsewhere.
  await fixture.admin.del('{espalier:said}:events', '{espalier:said}:newest');
  await publish(3, 4);
  await expect(stream.next()).rejects.toMatchObject({ code: 'ERR_EVENTS_MISSED' });
  expect(onError).not.toHaveBeenCalled();
});

it('an event of redis-cli is part of a history', async () => {
  const folder = makeFolder({ 'publish.lua': shown('lua') });
  const command = shown('sh', 1);
  expect(command).toMatch(/^redis-cli --eval publish\.lua /);
  const events = fixture.connect({ redis: fixture.redis.url, history: {} });
  const stream = events.subscribe('said');
  await events.ready('said');
  await run('sh', ['-c', command.replace('redis-cli', `redis-cli -p ${fixture.redis.port}`)], {
    cwd: folder,
  });
  await events.publish('said', { said: 'here' });
  const seen = await take(stream, 2);
  expect(seen).toEqual([{ said: 'hi' }, { said: 'here' }]);
  expect(await take(events.subscribe('said', { after: stream.startCursor ?? '' }), 2)).toEqual(seen);
});
