--- Sets the marker of waiters, a key that exists while there is any record of them. Decisions check records only if it
-- exists.
local function mark_waiting(marker, ms)
  if redis.call('PTTL', marker) < ms then redis.call('SET', marker, '', 'PX', string.format('%.0f', ms)) end
end
