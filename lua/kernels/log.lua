--- The exact log: one instant per admitted unit, oldest first. Pure.
-- state: `entry(i)`, the instant of the i-th entry from 0, and `total`, how many there are.
-- An entry exactly one window old no longer counts.

--- The index of the first entry that counts at `at`, `total` if none does. Gallops from `from`, before which nothing
-- counts, since few entries lapse from one decision to the next; from the first that counts on it halves (step 0).
local function log_firstLive(entry, from, total, at, windowMs)
  local low, high, step = from, total, 1
  while low < high do
    local probe = low + step - 1
    if step == 0 or probe >= high then probe, step = floor((low + high) / 2), 0 end
    if entry(probe) > at - windowMs then high, step = probe, 0 else low, step = probe + 1, step * 2 end
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
