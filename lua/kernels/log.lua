--- The exact log: one instant per admitted unit. Pure.
-- state: instants in ms, 6 bytes each, big-endian, oldest first.
-- An entry exactly one window old no longer counts.

--- The `k`-th newest entry, from 1.
local function log_nth(log, k)
  return (unpackBytes('>I6', log, #log - 6 * k + 1))
end

--- How many of the newest `atMost` entries stand in the window that ends at `at`.
local function log_live(log, at, windowMs, atMost)
  local low = 0
  local high = min(#log / 6, atMost)
  -- The oldest that could count settles it for most keys: nearly always it has expired or nothing has.
  while low < high do
    local middle = ceil((low + high) / 2)
    if log_nth(log, middle) > at - windowMs then low = middle else high = middle - 1 end
  end
  return low
end

--- Milliseconds from `at` until `cost` units have room: 0 now, -1 never.
local function log_waitFor(log, at, cost, limit, windowMs)
  if cost > limit then return -1 end
  local k = limit - cost + 1
  if cost == 0 or k > #log / 6 then return 0 end
  return max(0, log_nth(log, k) + windowMs - at)
end
