--- A fixed window: one counter, in a window that starts at a clock multiple or with a key's first unit. Pure.
-- state { count, start (ms) }   params { limit, windowMs }
-- Invariant: count <= limit, or the ceiling where refusals count.

--- When the window starts that `at` falls into, for a key without one.
local function counter_startOf(at, windowMs, byClock)
  if byClock then return floor(at / windowMs) * windowMs end
  return at
end

--- Milliseconds until `cost` units have room in a window that ends `endsIn` ms from now: 0 now, -1 never.
local function counter_waitFor(count, endsIn, cost, limit)
  if cost > limit then return -1 end
  -- What costs nothing has room where refusals have gone beyond the limit.
  if count + cost <= limit or cost == 0 then return 0 end
  return endsIn
end
