import type { RedisCommand } from '../redis/clients.ts';
import type { PresenceEntry, PresenceProcess, PresenceSnapshot, PresenceStore } from './presence-store.ts';

// Two hashes for each channel. `members` has for each id `{ process: [stamp, data] }` as JSON, with the data as text: cjson
// would change numbers and empty arrays. `processes` has `version last since before lifetime` for each process, with the
// times of the clock of Redis.

const presenceKeys = (channel: string): [string, string] => [
  `{${channel}}:members`,
  `{${channel}}:processes`,
];

// A process whose updates were interrupted removes no other one for its lifetime: if Redis was stopped, all were cut
// off. KEYS[3]: members, KEYS[4]: processes. ARGV: the process, the channel, the id of a start, the expected and the next
// version, the lifetime, the grace, whether the members are all; then pairs of an id and its data, empty for those who left.
const UPDATE = `
local own, expected, version = ARGV[1], ARGV[4], ARGV[5]
local lifetime, grace, full = tonumber(ARGV[6]), tonumber(ARGV[7]), ARGV[8] == '1'
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local dead, stored, since, before, revived = {}, '0', now, 0, false
local processes = redis.call('HGETALL', KEYS[4])
for i = 1, #processes, 2 do
  local v, l, s, b, life = string.match(processes[i + 1], '^(%d+) (%d+) (%d+) (%d+) (%d+)$')
  if processes[i] == own then
    stored, since, before = v, tonumber(s), tonumber(b)
    if now - l > grace then since, before = now, tonumber(l) end
    revived = now - l > tonumber(life)
  elseif now - l > tonumber(life) then
    dead[processes[i]] = true
  end
end
-- Others may have read without the members of a process that was silent for its lifetime: it names them again.
if (stored ~= expected or revived) and not full then return 0 end
local joined, left = {}, {}
local function shown(entry, lives)
  local best, from
  for process, each in pairs(entry) do
    local newer = not best or each[1] > best[1] or (each[1] == best[1] and process > from)
    if newer and not (lives and (dead[process] or revived and process == own)) then best, from = each, process end
  end
  return best and best[2]
end
local function describe(id, data)
  return '{"id":' .. cjson.encode(id) .. ',"data":' .. data .. '}'
end
local function alter(id, entry, edit)
  local was, last = shown(entry, true), shown(entry, false)
  edit(entry)
  local is = shown(entry, false)
  if is then redis.call('HSET', KEYS[3], id, cjson.encode(entry)) else redis.call('HDEL', KEYS[3], id) end
  if is and is ~= was then joined[#joined + 1] = describe(id, is) end
  if last and not is then left[#left + 1] = describe(id, last) end
end
local function removeOwn(entry) entry[own] = nil end
local listed = {}
for i = 9, #ARGV, 2 do
  local id, data = ARGV[i], ARGV[i + 1]
  local text = redis.call('HGET', KEYS[3], id)
  local entry = text and cjson.decode(text) or {}
  listed[id] = true
  if data == '' then
    if entry[own] then alter(id, entry, removeOwn) end
  elseif revived or not (entry[own] and entry[own][2] == data) then
    alter(id, entry, function(each) each[own] = {now, data} end)
  end
end
local sweeps = next(dead) and lifetime > 0 and now - since >= lifetime
if full or sweeps then
  local all = redis.call('HGETALL', KEYS[3])
  for i = 1, #all, 2 do
    local id, entry = all[i], cjson.decode(all[i + 1])
    if full and entry[own] and not listed[id] then alter(id, entry, removeOwn) end
    local found = false
    for process in pairs(entry) do found = found or dead[process] end
    if sweeps and found then
      alter(id, entry, function(each) for process in pairs(dead) do each[process] = nil end end)
    end
  end
end
if sweeps then for process in pairs(dead) do redis.call('HDEL', KEYS[4], process) end end
if lifetime > 0 then
  redis.call('HSET', KEYS[4], own, string.format('%s %.0f %.0f %.0f %.0f', version, now, since, before, lifetime))
else
  redis.call('HDEL', KEYS[4], own)
end
`;

/** Creates the script of an update. `publish` is the body of a function that publishes `payload`; `kept` is in milliseconds. */
export const updateScript = (publish: string, kept: number): string => `${UPDATE}
redis.call('PEXPIRE', KEYS[3], '${kept}')
redis.call('PEXPIRE', KEYS[4], '${kept}')
local function publish(payload)
${publish}
end
if #joined + #left > 0 then
  publish('{"joined":[' .. table.concat(joined, ',') .. '],"left":[' .. table.concat(left, ',') .. ']}')
end
return 1
`;

const READ = `return {redis.call('TIME'), redis.call('HGETALL', KEYS[2]), redis.call('HGETALL', KEYS[1])}`;

interface PresenceLine {
  /** The keys of the events of a channel. */
  keysOf(channel: string): readonly string[];
  createStart(): string;
  /** Sends the script of an update. */
  update(inputs: Required<Pick<RedisCommand, 'keys' | 'args'>>): Promise<unknown>;
  read(command: RedisCommand): Promise<unknown>;
}

/** Returns each pair of a list, as HGETALL returns it. */
function pairs(list: readonly string[]): [string, string][] {
  return list.flatMap((name, index) => (index % 2 === 0 ? [[name, list[index + 1] ?? '']] : []));
}

function processOf(text: string): PresenceProcess {
  const [, last = 0, since = 0, before = 0, lifetime = 0] = text.split(' ').map(Number);
  return { last, since, before, lifetime };
}

const entriesOf = ([id, text]: [string, string]): PresenceEntry[] =>
  Object.entries(JSON.parse(text) as Record<string, [number, string]>).map(([process, [stamp, data]]) => ({
    id,
    process,
    data,
    stamp,
  }));

export const redisPresence = (line: PresenceLine): PresenceStore => ({
  async update(channel, { process, expected, version, lifetime, grace, isFull, members }) {
    const keys = [...line.keysOf(channel), ...presenceKeys(channel)];
    const own = [process, channel, line.createStart(), expected, version, lifetime, grace, isFull ? 1 : 0];
    const args = [...own, ...members.flatMap(([id, data]) => [id, data ?? ''])];
    return (await line.update({ keys, args })) === 1;
  },

  async read(channel): Promise<PresenceSnapshot> {
    const reply = await line.read({ name: 'eval', script: READ, keys: presenceKeys(channel) });
    const [time, processes, members] = reply as [string[], string[], string[]];
    return {
      now: Number(time[0]) * 1000 + Math.floor(Number(time[1]) / 1000),
      processes: new Map(pairs(processes).map(([name, text]) => [name, processOf(text)])),
      entries: pairs(members).flatMap(entriesOf),
    };
  },
});
