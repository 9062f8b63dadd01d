--- @include "kernels/strikes"

--- Strikes and bans of an identity under a policy. `base .. 'strikes'`: rung (1 byte), the instant from which the time
-- to forget it runs (6), then 8 bytes per strike, see kernels/strikes.lua. `base .. 'block'`: as `block.lua` writes
-- it, with the reason of a ban: a byte 0, the rung, the number of strikes, and the reason of the last strike.
-- params from p on { after, withinMs, forgetAfterMs, the ms of each rung } up to `to`.

--- The start of a ban's keys, derived from the key of a cell on the same identity, so that batches need not send them.
local function strikes_base(key, cut, names)
  return string.sub(key, 1, -1 - cut) .. names
end

--- Writes a record for as long as it matters.
local function strikes_write(key, rung, since, strikes, withinMs, forgetAfterMs)
  local life = strikes_end(rung, since, strikes, withinMs, forgetAfterMs) - now
  if life > 0 then
    call('SET', key, packBytes('>BI6', rung, since) .. strikes, 'PX', life + slack)
  else
    call('DEL', key)
  end
end

--- Strikes an identity that is not banned. Returns the end of the ban that this starts and its reason, or 0 and ''.
local function strikes_strike(base, marker, weight, jitter, note, p, to)
  local after, withinMs, forgetAfterMs = number(p), number(p + 1), number(p + 2)
  local key = base .. 'strikes'
  local stored = tryCall('GET', key)
  local rung, since, strikes = 0, now, ''
  -- A foreign value counts as no record, and is replaced.
  if stored and #stored >= 7 and floor((#stored - 7) / 8) * 8 == #stored - 7 then
    rung, since = struct.unpack('>BI6', stored)
    strikes = string.sub(stored, 8)
  else
    requireRead(stored)
  end
  local last = strikes_last(strikes, now)
  local at = clock_instant(last, now, withinMs)
  if last > at then strikes = strikes_until(strikes, at) end
  rung = strikes_rung(rung, since, at, forgetAfterMs)
  local live, count = strikes_live(strikes, at, withinMs)
  count = count + weight
  local ends, reason = 0, ''
  if count < after then
    if rung > 0 then since = max(at, since) else since = at end
    strikes_write(key, rung, since, live .. packBytes('>I6I2', at, weight), withinMs, forgetAfterMs)
  else
    rung = min(rung + 1, to - p - 2)
    local life = number(p + 2 + rung) + jitter
    ends = now + life
    reason = '\0' .. string.format('%.0f', rung) .. ' ' .. string.format('%.0f', count) .. ' ' .. note
    strikes_write(key, rung, ends, '', withinMs, forgetAfterMs)
    call('SET', base .. 'block', string.format('%.0f', ends) .. ' ' .. reason, 'PX', life + slack)
    -- The marker must live as long as any block, or other processes would not check for this one.
    if marker ~= '' and call('PTTL', marker) <= life + slack then call('SET', marker, '1', 'PX', life + slack) end
  end
  return ends, reason
end
