--- Stands before a script that decides, where requests wait for their turn across processes: where none waits, that is all.
-- KEYS   those of the script; then the records of waiters, see shared/turns.lua, or the marker that stands for all of them
-- ARGV   those of the script; then which of KEYS is the first of these
-- Returns which of them there are, counted from 0, where there are any: then nothing is decided.
do
  local first, waited = tonumber(ARGV[#ARGV]), {}
  -- Lua can hand no more than some thousand keys to one command.
  for k = first, #KEYS, 1000 do
    if redis.call('EXISTS', unpack(KEYS, k, math.min(k + 999, #KEYS))) > 0 then
      for each = k, math.min(k + 999, #KEYS) do
        if redis.call('EXISTS', KEYS[each]) == 1 then waited[#waited + 1] = each - first end
      end
    end
  end
  if #waited > 0 then return waited end
end
