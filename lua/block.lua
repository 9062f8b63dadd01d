--- Blocks an identity.
-- KEYS   1 the block key
-- ARGV   1 the time in ms, or '' for Redis's own; 2 for how many ms; 3 the reason
-- Returns the instant at which the block ends.
local now, slack = tonumber(ARGV[1]), 0
if now then
  slack = 3600000
else
  local time = redis.call('TIME')
  now = time[1] * 1000 + math.floor(time[2] / 1000)
end
local ends = now + tonumber(ARGV[2])
redis.call('SET', KEYS[1], string.format('%.0f', ends) .. ' ' .. ARGV[3], 'PX', tonumber(ARGV[2]) + slack)
return ends
