--- Tells of the waiters in a process for one limit of one key.
-- KEYS   1 the record of its waiters
-- ARGV   1 the process; 2 for how many ms it is believed; 3 how many classes wait, 0 for none any more; for each: see shared/turns.lua
-- Returns 1 if any waits now, in any process, else 0.
--- @include "shared/turns"
local others, latest = turns_others(KEYS[1], ARGV[1])
return turns_write(KEYS[1], ARGV[1], ARGV[2] + 0, 3, others, latest) and 1 or 0
