--- Of a ban that is written again: the next one is of the next rung, though Redis has lost the record of strikes.
-- `reason`: that of a ban as the index has it, `rung/forgetAfterMs`. What has no such beginning is not of a ban.
local function rung_keep(key, ends, reason)
  local rung, forgetAfterMs = string.match(reason, '^%z(%d+)/(%d+) ')
  if not rung then return end
  local stored = redis.pcall('GET', key)
  if type(stored) == 'string' and #stored >= 7 and string.byte(stored) >= tonumber(rung) then return end
  redis.call('SET', key, struct.pack('>BI6', rung, ends), 'PX', ends - now + forgetAfterMs + slack)
end
