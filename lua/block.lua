--- Blocks an identity.
-- KEYS   1 the block key; 2 the marker that exists while any identity is blocked, where all keys are on one server
-- ARGV   1 the time in ms, or '' for Redis's own; 2 for how many ms; 3 the reason
-- Returns the instant at which the block ends.
local now, slack = tonumber(ARGV[1]), 0
if now then
  slack = 3600000
else
  local time = redis.call('TIME')
  now = time[1] * 1000 + math.floor(time[2] / 1000)
end
local ends, life = now + tonumber(ARGV[2]), tonumber(ARGV[2]) + slack
redis.call('SET', KEYS[1], string.format('%.0f', ends) .. ' ' .. ARGV[3], 'PX', life)
if KEYS[2] and redis.call('PTTL', KEYS[2]) <= life then redis.call('SET', KEYS[2], '1', 'PX', life) end
return ends
