--- Restores the rung of a ban: the next ban is then of the next rung, although Redis has lost the record of strikes.
-- `reason`: the reason of a ban in the index, which begins with `rung/forgetAfterMs`. Other reasons do not belong to
-- bans.
local function rung_keep(key, ends, reason)
  local rung, forgetAfterMs = string.match(reason, '^%z(%d+)/(%d+) ')
  if not rung then return end
  local stored = redis.pcall('GET', key)
  if type(stored) == 'string' and #stored >= 7 and string.byte(stored) >= tonumber(rung) then return end
  redis.call('SET', key, struct.pack('>BI6', rung, ends), 'PX', ends - now + forgetAfterMs + slack)
end
