--- Sets the marker of waiters, a key that is there while any record of them is: decisions that do not find it look for no record.
local function mark_waiting(marker, ms)
  if redis.call('PTTL', marker) < ms then redis.call('SET', marker, '', 'PX', string.format('%.0f', ms)) end
end
