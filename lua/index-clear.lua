--- Removes entries from a shard of the index of blocks, and voids all earlier knowledge of processes. See index.lua.
-- KEYS   1 the hash; 2 the sorted set
-- ARGV   1 the time in ms, or '' for Redis's own; 2 the incarnation of a new shard; 3 the maximum number of entries
-- Returns the time, which is the epoch from then on, and the fields.
local call, format = redis.call, string.format
local now = tonumber(ARGV[1])
if not now then
  local time = call('TIME')
  now = time[1] * 1000 + math.floor(time[2] / 1000)
end
local entries, changes = KEYS[1], KEYS[2]
call('PEXPIRE', entries, math.max(1, call('PTTL', entries)))
local version, incarnation = string.match(call('HMGET', entries, '')[1] or '', '^(%d+) (%S+) (%d+)$')
local fields = call('ZRANGE', changes, 0, ARGV[3] - 1)
for _, field in ipairs(fields) do
  call('HDEL', entries, field)
  call('ZREM', changes, field)
end
call('HSET', entries, '', format('%.0f %s %.0f', (version or 0) + 1, incarnation or ARGV[2], now))
-- Every process has noticed by then.
call('PEXPIRE', entries, math.max(86400000, call('PTTL', entries)))
table.insert(fields, 1, format('%.0f', now))
return fields
