--- The exact log: one instant per admitted unit, oldest first. Pure.
-- state: `entry(i)`, the instant of the i-th entry from 0, and `total`, how many there are.
-- An entry exactly one window old no longer counts.

--- The index of the first entry that counts at `at`, `total` if none does. Gallops from `from`, before
-- which nothing counts: from one decision to the next few entries lapse.
local function log_firstLive(entry, from, total, at, windowMs)
  local low, step = from, 1
  while low + step <= total and entry(low + step - 1) <= at - windowMs do
    low = low + step
    step = step * 2
  end
  local high = min(low + step, total)
  while low < high do
    local middle = floor((low + high) / 2)
    if entry(middle) > at - windowMs then high = middle else low = middle + 1 end
  end
  return low
end

--- Milliseconds from `at` until `cost` units have room, `live` entries counting: 0 now, -1 never.
local function log_waitFor(entry, total, live, at, cost, limit, windowMs)
  if cost > limit then return -1 end
  if live + cost <= limit then return 0 end
  -- With `cost` more, the entry that would be one too many stands this far from the newest.
  return entry(total - (limit - cost + 1)) + windowMs - at
end
