--- The instant of a decision, given the instant when its state was written. Pure. A clock that stepped back must not
-- refund, so time stands still until the clock has caught up. A stored instant more than horizonMs ahead is wrong and
-- is read as now.
local function clock_instant(at, now, horizonMs)
  if at > now and at <= now + horizonMs then return at end
  return now
end

local function clock_isAhead(at, now, horizonMs)
  return at > now + horizonMs
end
