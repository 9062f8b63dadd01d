--- The same as waiting.lua before a script for one decision of one cell.
-- KEYS   those of the script; 3 the record of waiters or the marker, see waiting.lua
-- ARGV   those of the script
-- Returns a list of one 0 where it is there: then nothing is decided.
if redis.call('EXISTS', KEYS[3]) == 1 then return { 0 } end
