import type { RedisCommand } from '../redis/clients.ts';
import { createStart } from './history.ts';
import type { PresenceSnapshot, PresenceStore, Tabs } from './presence-store.ts';

/** A hash for each channel has the tabs of each id as JSON, with the data as text: cjson would change numbers. */
const keyOf = (channel: string): string => `{${channel}}:members`;

/**
 * Creates the script of an update. `publish` is the body of Lua that publishes `payload`; `kept` is in milliseconds.
 * KEYS[3]: members. ARGV: the process, the channel, the id of a start, the expected version; then pairs of an id and its data,
 * empty for none.
 */
export const updateScript = (publish: string, kept: number): string => `
local own, changes, time = ARGV[1], {}, redis.call('TIME')
local now = string.format('%d%06d', time[1], time[2])
local version = cjson.decode(redis.call('HGET', KEYS[3], '') or '{}')[own] or ''
if string.match(version, '%d*$') ~= ARGV[4] then return false end
for i = 5, #ARGV, 2 do
  local id, data = ARGV[i], ARGV[i + 1]
  local text = redis.call('HGET', KEYS[3], id) or '{}'
  local was, is = cjson.decode(text), cjson.decode(text)
  is[own] = data ~= '' and now .. ' ' .. data or nil
  if next(is) then redis.call('HSET', KEYS[3], id, cjson.encode(is)) else redis.call('HDEL', KEYS[3], id) end
  if id ~= '' and (was[own] or is[own]) then changes[#changes + 1] = {id, was, is} end
end
redis.call('PEXPIRE', KEYS[3], '${kept}')
if #changes > 0 then
  local payload = cjson.encode(changes)
  ${publish}
end
return {time, {'', redis.call('HGET', KEYS[3], '') or '{}'}}
`;

const READ = `return {redis.call('TIME'), redis.call('HGETALL', KEYS[1])}`;

/** What the scripts return. In the list, the tabs of an id follow it. */
type Reply = readonly [time: readonly string[], list: readonly string[]];

const snapshotOf = ([[seconds, micros], list]: Reply): PresenceSnapshot => ({
  now: Number(seconds) * 1e6 + Number(micros),
  tabs: list.flatMap((id, index) =>
    index % 2 > 0 ? [] : [[id, JSON.parse(list[index + 1] ?? '{}') as Tabs] as const],
  ),
});

/** `keysOf` returns the keys of the events of a channel, `run` sends the script of an update. */
export const redisPresence = (
  keysOf: (channel: string) => readonly string[],
  run: (inputs: Pick<RedisCommand, 'keys' | 'args'>) => Promise<unknown>,
  read: (command: RedisCommand) => Promise<unknown>,
): PresenceStore => ({
  async update(channel, process, expected, entries) {
    const pairs = entries.flatMap(([id, data]) => [id, data ?? '']);
    const args = [process, channel, createStart(), expected, ...pairs];
    const reply = await run({ keys: [...keysOf(channel), keyOf(channel)], args });
    return reply === null ? undefined : snapshotOf(reply as Reply);
  },
  async read(channel) {
    return snapshotOf((await read({ name: 'eval', script: READ, keys: [keyOf(channel)] })) as Reply);
  },
});
