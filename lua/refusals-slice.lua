--- Reads a slice, see refusals.lua.
-- KEYS   1 the sorted set; 2 the hash
-- Returns the number of refusals, the most by which counts may be too low, then identities, each with its count.
local reply = redis.call('ZRANGE', KEYS[1], 0, -1, 'WITHSCORES')
local sum = redis.call('HMGET', KEYS[2], 'refusals', 'error')
table.insert(reply, 1, sum[2] or '0')
table.insert(reply, 1, sum[1] or '0')
return reply
