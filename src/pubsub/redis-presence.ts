import type { RedisCommand } from '../redis/clients.ts';
import { createStart } from './history.ts';
import type { PresenceStore } from './presence-store.ts';

/** A channel has a hash with the texts of its members, and one with those of its processes, whose keys begin with `p`. */
const hashesOf = (channel: string): [string, string] => [`{${channel}}:members`, `{${channel}}:processes`];

/**
 * Creates the script that writes. `publish` is the body of Lua that publishes the event; `kept` is in milliseconds.
 * KEYS[3]: members, KEYS[4]: processes. ARGV: the event or an empty text, the channel, the id of a start; then triples of a key,
 * its text before and after.
 */
export const writeScript = (publish: string, kept: number): string => `
local function hash(key) return KEYS[string.sub(key, 1, 1) == 'p' and 4 or 3] end
for i = 4, #ARGV, 3 do
  if (redis.call('HGET', hash(ARGV[i]), ARGV[i]) or '') ~= ARGV[i + 1] then return 0 end
end
for i = 4, #ARGV, 3 do
  if ARGV[i + 2] == '' then redis.call('HDEL', hash(ARGV[i]), ARGV[i])
  else redis.call('HSET', hash(ARGV[i]), ARGV[i], ARGV[i + 2]) end
end
for i = 3, 4 do redis.call('PEXPIRE', KEYS[i], '${kept}') end
if ARGV[1] ~= '' then
  ${publish}
end
return 1
`;

// ARGV: 'all', or the keys. Returns the time, and pairs of a key and its text.
const READ = `
local texts = redis.call('HGETALL', KEYS[2])
local members = ARGV[1] == 'all' and redis.call('HGETALL', KEYS[1]) or {}
for i = 1, ARGV[1] == 'all' and 0 or #ARGV do
  members[2 * i - 1], members[2 * i] = ARGV[i], redis.call('HGET', KEYS[1], ARGV[i]) or ''
end
return {redis.call('TIME'), members, texts}
`;

/** `keysOf` returns the keys of the events of a channel, `run` sends the script that writes. */
export const redisPresence = (
  keysOf: (channel: string) => readonly string[],
  run: (inputs: Pick<RedisCommand, 'keys' | 'args'>) => Promise<unknown>,
  read: (command: RedisCommand) => Promise<unknown>,
): PresenceStore => ({
  async read(channel, keys = ['all']) {
    const reply = await read({ name: 'eval', script: READ, keys: hashesOf(channel), args: keys });
    const [[seconds, micros], ...lists] = reply as [time: string[], ...lists: string[][]];
    const pairs = lists
      .flat()
      .flatMap((key, index, list) => (index % 2 > 0 ? [] : [[key, list[index + 1] ?? ''] as const]));
    return { now: Number(seconds) * 1e6 + Number(micros), texts: new Map(pairs) };
  },
  async write(channel, changes, event) {
    const args = [
      event === undefined ? '' : JSON.stringify(event),
      channel,
      createStart(),
      ...changes.flat(),
    ];
    return Number(await run({ keys: [...keysOf(channel), ...hashesOf(channel)], args })) === 1;
  },
});
