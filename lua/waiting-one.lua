--- The same as waiting.lua before a script for one decision of one cell.
-- KEYS   those of the script; 3 the record of waiters, see shared/turns.lua
-- ARGV   those of the script
-- Returns a list of one 0 where there is that record: then nothing is decided.
if redis.call('EXISTS', KEYS[3]) == 1 then return { 0 } end
