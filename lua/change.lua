--- Adds the entry of a change that begins, or replaces an entry.
-- KEYS   1 the sorted set, by their numbers
-- ARGV   1 the time in ms, or '' for Redis's own; 2 the life of the set in ms
--        to add: 3 the maximum number of entries; 4 the contents
--        to replace: 3 the number; 4 the entry; 5 the entry before
-- Returns the added entry; or whether there was one to replace, 1 or 0.
local call = redis.call
--- @include "shared/newest-change"
local key, life = KEYS[1], ARGV[2]
-- Nothing is written before it is certain that it gets an expiry.
call('PEXPIRE', key, life)
if ARGV[5] then
  if call('ZREM', key, ARGV[5]) == 0 then return 0 end
  call('ZADD', key, ARGV[3], ARGV[4])
  call('PEXPIRE', key, life)
  return 1
end
local now = ARGV[1]
if now == '' then
  local time = call('TIME')
  now = string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000))
end
local number = string.format('%.0f', newestChange(key) + 1)
local entry = 'b' .. number .. ':' .. now .. ':' .. ARGV[4]
call('ZADD', key, number, entry)
for _, oldest in ipairs(call('ZRANGE', key, 0, -ARGV[3] - 1)) do
  call('ZREM', key, oldest)
end
call('PEXPIRE', key, life)
return entry
