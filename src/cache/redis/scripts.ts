// The scripts of the Redis store. All keys have the prefix as hash tag, so that a cluster keeps them together.
//
// A counter increases with each invalidation. The record of a tag has the counter at its creation. An entry has
// the counter at the start of its execution; it is valid as long as the records of all its tags exist and are not
// newer. Invalidating a tag increases the counter and deletes the record. A record that Redis evicts therefore
// invalidates entries, and never makes an old one valid again.
//
// The keys contain the id of the running server, because a restart or a failover may lose invalidations. The commands
// of a cluster may reach another node at any time, so the scripts compare the id. A node with another id executes
// nothing, and its reply contains its id.

/**
 * Begins each script. ARGV[1] is the id in the keys, or empty where it need not be compared. The reply begins with the
 * id of the server.
 */
const CHECK_SERVER = `
local server = ARGV[1]
if server ~= '' then
  local info = redis.pcall('INFO', 'server')
  if type(info) == 'string' then server = string.match(info, 'run_id:(%w+)') or server end
  if server ~= ARGV[1] then return {server} end
end
`;

/** A new counter starts with the time, so that it exceeds an earlier one that was lost or has expired. */
const READ_COUNTER = `
local counter = redis.call('GET', KEYS[1])
if not counter then
  local time = redis.call('TIME')
  counter = string.format('%.0f', time[1] * 1000000 + time[2])
  redis.call('SET', KEYS[1], counter, 'EX', 604800)
end
`;

const BEGIN = `${CHECK_SERVER}${READ_COUNTER}`;

/** KEYS: counter, entry. Returns the counter and, for a valid entry, its meta data and body. */
export const GET: string = `${BEGIN}
local entry = redis.call('HMGET', KEYS[2], 'version', 'tags', 'meta', 'body')
if not entry[1] then return {server, counter} end
for _, key in ipairs(cjson.decode(entry[2])) do
  local record = redis.call('GET', key)
  if not record or tonumber(record) > tonumber(entry[1]) then
    redis.call('UNLINK', KEYS[2])
    return {server, counter}
  end
end
return {server, counter, entry[3], entry[4]}
`;

/**
 * KEYS: counter, entry, records of tags. ARGV: version, milliseconds to live, meta data, body. Returns 1 if it was
 * stored. An entry has the names of the records as Redis knows them, with the key prefix of the client.
 */
export const SET: string = `${BEGIN}
local stored, tags = 1, {}
for index = 3, #KEYS do
  local key = KEYS[index]
  tags[#tags + 1] = key
  local record = redis.call('GET', key)
  if not record then
    record = counter
    redis.call('SET', key, record, 'PX', ARGV[3])
  elseif redis.call('PTTL', key) < tonumber(ARGV[3]) then
    redis.call('PEXPIRE', key, ARGV[3])
  end
  if tonumber(record) > tonumber(ARGV[2]) then stored = 0 end
end
if stored == 1 then
  redis.call('HSET', KEYS[2], 'version', ARGV[2], 'tags', cjson.encode(tags), 'meta', ARGV[4], 'body', ARGV[5])
  redis.call('PEXPIRE', KEYS[2], ARGV[3])
end
return {server, stored}
`;

/**
 * KEYS: counter, records of tags. The deletions come first: Redis without free memory refuses to begin a script with a
 * command that may need some, and allows it after another write.
 */
export const INVALIDATE: string = `${CHECK_SERVER}
for index = 2, #KEYS do redis.call('UNLINK', KEYS[index]) end
${READ_COUNTER}
redis.call('INCR', KEYS[1])
return {server}
`;
