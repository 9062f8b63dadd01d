--- Writes the waiters of a process for one limit of one key.
-- KEYS   1 the record of its waiters
-- ARGV   1 the process; 2 for how many ms the report is trusted; 3 the marker of waiters, '' in a cluster; 4 the
--        number of waiting classes, which may be 0; for each: see shared/turns.lua
local time = redis.call('TIME')
local turnsNow = time[1] * 1000 + math.floor(time[2] / 1000)
--- @include "shared/turns"
local others, latest = turns_others(KEYS[1], ARGV[1])
turns_write(KEYS[1], ARGV[1], ARGV[2], ARGV[3], 4, others, latest)
