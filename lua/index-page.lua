--- Reads changes of a shard of the index of blocks, the oldest first. See index.lua.
-- KEYS   1 the hash; 2 the sorted set
-- ARGV   1 the time in ms, or '' for Redis's own; 2 the version after which to read; 3 the maximum number of changes;
--        4 '', or the field that should have that version
-- Returns the time; the head, '' for a missing or incomplete shard; whether that field has that version, 1 or 0; and
-- for each change the version, the field and the entry.
local call = redis.call
local now = ARGV[1]
if now == '' then
  local time = call('TIME')
  now = string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000))
end
local entries, changes = KEYS[1], KEYS[2]
-- A value of another type counts as missing. A forbidden command fails.
local first, size = redis.pcall('HMGET', entries, ''), redis.pcall('ZCARD', changes)
for _, found in ipairs({ first, type(size) == 'table' and size or first }) do
  if found.err and not string.match(found.err, '^WRONGTYPE') then error(found.err) end
end
local head = first[1] or ''
if head ~= '' and (type(size) == 'table' or call('HLEN', entries) ~= size + 1) then head = '' end
local reply = { now, head, 1 }
if head ~= '' and ARGV[4] ~= '' and tonumber(call('ZSCORE', changes, ARGV[4]) or -1) ~= tonumber(ARGV[2]) then reply[3] = 0 end
if head ~= '' then
  local found = call('ZRANGEBYSCORE', changes, '(' .. ARGV[2], '+inf', 'WITHSCORES', 'LIMIT', 0, ARGV[3])
  for i = 1, #found, 2 do
    reply[#reply + 1] = found[i + 1]
    reply[#reply + 1] = found[i]
    reply[#reply + 1] = call('HMGET', entries, found[i])[1] or ''
  end
end
return reply
