--- @kind 4 params=4 together
--- @script decide-counter own=1
--- @script decide-counters joint
--- @script one-counter own=1

--- @kernel
--- A fixed window: one counter, in a window that starts at a clock multiple or with a key's first unit. Pure.
-- state { count, start (ms) }   params { limit, windowMs }
-- Invariant: count <= limit, or the ceiling if refusals count.

--- The start of the window that contains `at`, for a key without a window.
local function counter_startOf(at, windowMs, byClock)
  if byClock then return floor(at / windowMs) * windowMs end
  return at
end

--- @when calendar
--- The same for a window of the calendar, whose start is `windowMs` before its end: the largest length of such windows, so that
-- all else is the same for both. Its end is the first of the bounds, in ascending order from `from` to `to`, that is later than
-- `at`. Where a clock is outside of all, windows go on from the nearest bound in that length.
local function counter_startIn(at, windowMs, bounds, from, to)
  local nearest = bounds[to]
  for i = to, from, -1 do
    if bounds[i] > at then nearest = bounds[i] end
  end
  return nearest + floor((at - nearest) / windowMs) * windowMs
end
--- @end

--- Milliseconds until `cost` units have room in a window that ends `endsIn` ms from now: 0 now, -1 never.
local function counter_waitFor(count, endsIn, cost, limit)
  if cost > limit then return -1 end
  -- A cost of 0 has room even if refusals exceed the limit.
  if count + cost <= limit or cost == 0 then return 0 end
  return endsIn
end

--- @state
--- A fixed window under one key: count (7 bytes) and start (6). The key expires with its window.
-- params { limit, windowMs, whether refusals count, byClock }
local own, limit, windowMs, byClock
-- The maximum of the count.
local most
--- @when calendar
-- The positions in ARGV of the bounds of a window of the calendar; the first is after the last for others.
local firstBound, lastBound
--- @end
-- By cell: the count of a new client, the bytes of that state at the present instant, and its life as text. Most new
-- clients share these.
local newCountOf, newStateOf, newLifeOf = {}, {}, {}
-- The count in the window that starts at `start`; the start as stored, nil for a key without a state.
local count, start, since

prepare[COUNTER] = function(c)
  newCountOf[c] = nil
end

open[COUNTER] = function(c)
  local p = first[c]
  own = c
  limit, windowMs, byClock = ARGV[p], ARGV[p + 1], ARGV[p + 3] == 1
  most = limit
  if ARGV[p + 2] == 1 then most = ceiling_of(limit, windowMs) end
--- @when calendar
  firstBound, lastBound = p + 4, last[c]
--- @end
end

--- @when several
keep[COUNTER] = function(c)
  kept1[c], kept2[c], kept3[c] = count, start, since
end

recall[COUNTER] = function(c)
  count, start, since = kept1[c], kept2[c], kept3[c]
end
--- @end

--- @when joint
--- Count and start, the same as under a key of its own; none if the count is 0.
size[COUNTER] = function()
  return 13
end
--- @end

local function counter_write(key)
--- @when joint
  if joint > 0 then
    joint_put(packBytes('>I7I6', count, start), '', count > 0 and start + windowMs - now or 0)
  else
--- @end
  if count == 0 then
    call('DEL', key)
  elseif since == start then
    call('SETRANGE', key, '0', packBytes('>I7', count))
  elseif not since then
    if newCountOf[own] ~= count then
      newCountOf[own], newStateOf[own] = count, packBytes('>I7I6', count, start)
      newLifeOf[own] = format('%d', start + windowMs - now + slack)
    end
    call('SET', key, newStateOf[own], 'PX', newLifeOf[own])
  else
    call('SET', key, packBytes('>I7I6', count, start), 'PX', start + windowMs - now + slack)
  end
--- @when joint
  end
--- @end
end

look[COUNTER] = function(key, cost)
  local instant, isOver = now, true
  since = nil
--- @when joint
  if joint > 0 then
    count = 0
    if storedOf[joint] then count, since = unpackBytes('>I7I6', storedOf[joint], after[mine] + 1) end
    if count == 0 then since = nil end
  else
--- @end
  local stored = tryCall('GET', key)
  if stored and #stored == 13 then
    count, since = unpackBytes('>I7I6', stored)
  else
    requireRead(stored)
  end
--- @when joint
  end
--- @end
  if since then
    instant = clock_instant(since, now, windowMs)
    isOver = instant >= since + windowMs
  end
  if isOver then count = 0 end
  if not isOver and since <= instant then start = since else start = counter_startOf(instant, windowMs, byClock) end
--- @when calendar
  -- Only a window that still runs has started as stored.
  if start ~= since and firstBound < lastBound then
    start = counter_startIn(instant, windowMs, ARGV, firstBound, lastBound)
  end
--- @end
  return counter_waitFor(count, start + windowMs - now, cost, limit)
end

--- @when together
room[COUNTER] = function()
  return limit - count
end
--- @end

take[COUNTER] = function(key, cost)
  -- Never less than before: it may exceed the limit by a debt.
  count = max(count, min(most, count + cost))
  counter_write(key)
end

refund[COUNTER] = function(key, cost, receipt)
  if not since or start ~= receipt then return end
  count = max(0, count - cost)
  counter_write(key)
end

--- @when debit
debit[COUNTER] = function(key, cost)
  local usual = most
  most = ceiling_of(limit, windowMs)
  take[COUNTER](key, cost)
  most = usual
end
--- @end

heal[COUNTER] = function(key)
  if since and clock_isAhead(since, now, windowMs) then counter_write(key) end
end

--- Count (7 bytes), start (6).
report[COUNTER] = function(key, cost, outcome)
  say(packBytes('>BI7I6', outcome, count, start))
end

--- @when exchange
--- Pairs: the start of a window, and its charged units (negative for refunds). A window that is over does not count.
merge[COUNTER] = function(key, from, to)
  for at = from, to, 2 do
    local started, units = number(at), number(at + 1)
    if started + windowMs > now then
      if count == 0 and not byClock then start = min(now, started) end
      count = max(0, min(most, count + units))
    end
  end
  if since or count > 0 then counter_write(key) end
end

--- Count (7 bytes), start (6).
state[COUNTER] = function()
  return packBytes('>I7I6', count, start)
end
--- @end
