--- Reads entries of changes, see change.lua. The oldest is first.
-- KEYS   1 the sorted set
-- ARGV   1 the number below which to read, or '' for the newest; 2 how many numbers
-- Returns the number of the newest entry below these, or ''; and the entries.
local call = redis.call
--- @include "shared/newest-change"
local key = KEYS[1]
local below = tonumber(ARGV[1]) or newestChange(key) + 1
local from = below - ARGV[2]
local before = call('ZRANGE', key, from - 1, 1, 'BYSCORE', 'REV', 'LIMIT', 0, 1, 'WITHSCORES')[2] or ''
return { before, call('ZRANGEBYSCORE', key, from, below - 1) }
