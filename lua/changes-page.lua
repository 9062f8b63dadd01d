--- Reads entries of changes, see change.lua. The oldest is first.
-- KEYS   1 the sorted set
-- ARGV   1 the number below which to read, or '' for the newest; 2 how many
-- Returns each entry, and its number.
local call = redis.call
local below = tonumber(ARGV[1])
if not below then below = (tonumber(call('ZRANGE', KEYS[1], -1, -1, 'WITHSCORES')[2]) or 0) + 1 end
return call('ZRANGEBYSCORE', KEYS[1], below - ARGV[2], below - 1, 'WITHSCORES')
