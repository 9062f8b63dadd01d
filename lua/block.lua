--- Blocks an identity of a cluster, whose block key is on another server than the index.
-- KEYS   1 the block key; 2 for a restored block, the key of strikes
-- ARGV   1 the time in ms, or '' for Redis's own; 2 for how many ms; 3 the reason; 4 for a restored block, its end
-- Returns the instant at which the block ends.
local now, slack = tonumber(ARGV[1]), 0
if now then
  slack = 3600000
else
  local time = redis.call('TIME')
  now = time[1] * 1000 + math.floor(time[2] / 1000)
end

--- @include "shared/rung"

local ends = tonumber(ARGV[4] or now + ARGV[2])
if ends > now then
  redis.call('SET', KEYS[1], string.format('%.0f', ends) .. ' ' .. ARGV[3], 'PX', ends - now + slack)
  if KEYS[2] then rung_keep(KEYS[2], ends, ARGV[3]) end
end
return ends
