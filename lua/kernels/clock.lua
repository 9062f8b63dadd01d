--- The instant a decision is made at, given the instant its state was written at. Pure.
-- A clock that stepped back must not refund, so time stands still until it has caught up. A stored
-- instant further ahead than horizonMs cannot be true and is read as now.
local function clock_instant(at, now, horizonMs)
  if at > now and at <= now + horizonMs then return at end
  return now
end

local function clock_isAhead(at, now, horizonMs)
  return at > now + horizonMs
end
