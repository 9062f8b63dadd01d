--- @kind 3 params=4
--- @script decide-segments
--- @script one-segments

--- @kernel
--- A sliding window of segments. Pure.
-- state of segments { segment, total } and one counter per segment, newest first, `width` bytes each,
-- big-endian; the last is the edge.   params { limit, windowMs, segments, edge }
-- Invariant: counters and total <= limit (the largest of all plans on this state), or the ceiling if refusals count.
-- That bound times windowMs is below 2^53, so no step below can round.

local STRICT, DROPPED, WEIGHTED_DOWN = 0, 1, 2
-- Added to the edge mode if refusals count, too.
local WITH_REFUSALS = 4
-- Added to the edge mode if counters have the same width for all limits: 4 bytes, or 7 for limits above
-- LARGEST_NARROW.
local WIDE, LARGEST_NARROW = 8, 2147483647

--- The counter of the `k`-th segment before the current one.
local function window_nth(counts, k, width, format)
  return (unpackBytes(format, counts, k * width + 1))
end

--- Units of the total that a shift by `by` segments moves out of the window proper.
local function window_leaving(counts, by, segments, width, format)
  local units = 0
  for k = max(0, segments - by), segments - 1 do units = units + window_nth(counts, k, width, format) end
  return units
end

--- Units that the edge segment counts as, `offset` ms into the current segment.
local function window_edgeUnits(count, offset, segmentMs, edge)
  if edge == STRICT then return count end
  if edge == DROPPED then return 0 end
  local share = (count * (segmentMs - offset)) / segmentMs
  if edge == WEIGHTED_DOWN then return floor(share) end
  return ceil(share)
end

--- The least offset into a segment at which an edge of `count` units counts as `room` or less; `segmentMs` if there is
-- none.
local function window_offsetFor(count, room, segmentMs, edge)
  if edge == DROPPED or count <= room then return 0 end
  if edge == STRICT then return segmentMs end
  if edge == WEIGHTED_DOWN then return floor((segmentMs * (count - room - 1)) / count) + 1 end
  return ceil((segmentMs * (count - room)) / count)
end

--- Milliseconds from `offset` ms into the current segment until `cost` units have room: 0 now, -1 never.
local function window_waitFor(counts, total, offset, cost, limit, segments, segmentMs, edge, width, format)
  if cost > limit then return -1 end
  -- Even if refusals exceed the limit.
  if cost == 0 then return 0 end
  local inside, wait = total, (segments + 1) * segmentMs - offset
  for by = 0, segments do
    if by > 0 then inside = inside - window_nth(counts, segments - by, width, format) end
    if inside + cost <= limit then
      local count = window_nth(counts, segments - by, width, format)
      local from = window_offsetFor(count, limit - cost - inside, segmentMs, edge)
      if from < segmentMs then
        wait = max(0, by * segmentMs + from - offset)
        break
      end
    end
  end
  return wait
end

--- Milliseconds until no unit counted so far has any effect.
local function window_resetAfter(counts, offset, segments, segmentMs, edge, width, format)
  local reset = 0
  for k = 0, segments do
    local count = window_nth(counts, k, width, format)
    if count > 0 then
      reset = max(0, (segments - k) * segmentMs + window_offsetFor(count, 0, segmentMs, edge) - offset)
      break
    end
  end
  return reset
end

--- @state
--- A sliding window of segments under one key: the number of the newest segment (6 bytes), then the total and the
-- counters, newest first, each as wide as their maximum requires.
-- params { limit, windowMs, segments, edge, plus WITH_REFUSALS if refusals count, plus WIDE if other limits count in
-- the same state }
local limit, windowMs, segments, edge, segmentMs, width, counter
-- Whether refusals count, and the maximum of the counters.
local withRefusals, most
-- By cell: the bytes of a counter, its format, its maximum.
local widthOf, counterOf, mostOf = {}, {}, {}
-- The counters as of segment `segment`, in which the decision's instant is `offset` ms; the segment as stored, or nil.
local counts, total, segment, offset, instant, newest

prepare[SEGMENTS] = function(c)
  local p = first[c]
  local bytes, top, limit, isWide = 1, 256, ARGV[p], ARGV[p + 3] >= WIDE
  if isWide then bytes = limit > LARGEST_NARROW and 7 or 4 end
  -- Debts, refusals and larger limits on the same state count beyond the limit.
  if ARGV[p + 3] >= WITH_REFUSALS then limit = ceiling_of(limit, ARGV[p + 1]) end
  while not isWide and top <= limit do
    bytes = bytes + 1
    top = top * 256
  end
  widthOf[c], counterOf[c], mostOf[c] = bytes, '>I' .. bytes, limit
end

open[SEGMENTS] = function(c)
  local p = first[c]
  limit, windowMs, segments, edge = ARGV[p], ARGV[p + 1], ARGV[p + 2], ARGV[p + 3]
  segmentMs, width, counter, most = windowMs / segments, widthOf[c], counterOf[c], mostOf[c]
  if edge >= WIDE then edge = edge - WIDE end
  withRefusals = edge >= WITH_REFUSALS
  if withRefusals then edge = edge - WITH_REFUSALS end
end

--- @when several
keep[SEGMENTS] = function(c)
  kept1[c], kept2[c], kept3[c], kept4[c], kept5[c], kept6[c] = counts, total, segment, offset, instant, newest
end

recall[SEGMENTS] = function(c)
  counts, total, segment, offset, instant, newest = kept1[c], kept2[c], kept3[c], kept4[c], kept5[c], kept6[c]
end
--- @end

local function segments_wait(cost)
  local wait = window_waitFor(counts, total, offset, cost, limit, segments, segmentMs, edge, width, counter)
  if wait > 0 then return wait + instant - now end
  return wait
end

local function segments_reset()
  local reset = window_resetAfter(counts, offset, segments, segmentMs, edge, width, counter)
  if reset > 0 then return reset + instant - now end
  return 0
end

--- @when joint
--- The same as under a key of its own; none if no unit counts.
size[SEGMENTS] = function(c)
  return 6 + (ARGV[first[c] + 2] + 2) * widthOf[c]
end
--- @end

--- The longest time for which a unit in the newest segment can count. Written once per segment, whatever follows in it.
local function segments_life()
  return windowMs + segmentMs - offset + instant - now
end

local function segments_state()
  return packBytes('>I6', segment) .. packBytes(counter, total) .. counts
end

local function segments_write(key)
--- @when joint
  if joint > 0 then
    local state, life = segments_state(), segments_life()
    if segments_reset() == 0 then state, life = rep('\0', bytes[mine]), 0 end
    joint_put(state, '', life)
  else
--- @end
  if segments_reset() > 0 then
    call('SET', key, segments_state(), 'PX', segments_life() + slack)
  elseif newest then
    call('DEL', key)
  end
--- @when joint
  end
--- @end
end

--- Adds `units` (or takes, if negative) to the `k`-th counter.
local function segments_add(k, units)
  local count = packBytes(counter, window_nth(counts, k, width, counter) + units)
  counts = sub(counts, 1, k * width) .. count .. sub(counts, (k + 1) * width + 1)
  if k < segments then total = total + units end
end

local function segments_room()
  return max(0, limit - total - window_edgeUnits(window_nth(counts, segments, width, counter), offset, segmentMs, edge))
end

--- A state from an impossible future is read as if its newest segment were the current one. A weighted edge counts by
-- the instant, so it moves into the window proper, where it counts in full.
local function segments_bringBack()
  if edge < WEIGHTED_DOWN then return end
  local units = window_nth(counts, segments, width, counter)
  counts = sub(counts, 1, segments * width) .. rep('\0', width)
  segments_add(segments - 1, max(0, min(units, most - total)))
end

look[SEGMENTS] = function(key, cost)
  local stored
  local at = 1
--- @when joint
  if joint > 0 then
    stored, at = storedOf[joint], after[mine] + 1
  else
--- @end
  stored = tryCall('GET', key)
  if stored and #stored ~= 6 + (segments + 2) * width then
    requireRead(stored)
    stored = false
  end
--- @when joint
  end
--- @end
  newest, instant = nil, now
  if stored then
    newest = unpackBytes('>I6', stored, at)
    instant = clock_instant(newest * segmentMs, now, windowMs)
  end
  segment = floor(instant / segmentMs)
  offset = instant - segment * segmentMs
  local by = stored and max(0, segment - newest) or segments + 1
  if by > segments then
    total, counts = 0, rep('\0', (segments + 1) * width)
  else
    total, counts = unpackBytes(counter, stored, at + 6), sub(stored, at + 6 + width, at + 5 + (segments + 2) * width)
    if by > 0 then
      total = total - window_leaving(counts, by, segments, width, counter)
      counts = rep('\0', by * width) .. sub(counts, 1, (segments + 1 - by) * width)
    end
  end
  if newest and clock_isAhead(newest * segmentMs, now, windowMs) then segments_bringBack() end
  return segments_wait(cost)
end

take[SEGMENTS] = function(key, cost)
  local room
  if withRefusals then room = max(0, most - total) else room = segments_room() end
  segments_add(0, min(cost, room))
  local isNewest = newest == segment
--- @when joint
  isNewest = isNewest and joint == 0
--- @end
  if isNewest then
    call('SETRANGE', key, '6', packBytes(counter, total) .. sub(counts, 1, width))
  else
    segments_write(key)
  end
end

refund[SEGMENTS] = function(key, cost, receipt)
  local k = segment - receipt
  if not newest or k < 0 or k > segments then return end
  segments_add(k, -min(cost, window_nth(counts, k, width, counter)))
  segments_write(key)
end

--- @when debit
debit[SEGMENTS] = function(key, cost)
  local usual = withRefusals
  withRefusals = true
  take[SEGMENTS](key, cost)
  withRefusals = usual
end
--- @end

heal[SEGMENTS] = function(key)
  if newest and clock_isAhead(newest * segmentMs, now, windowMs) then segments_write(key) end
end

--- Room (7 bytes), the ms until nothing counts (7), segment (6); and for a refusal one more than the ms until the
-- cost has room (7), and until there is more room (7).
report[SEGMENTS] = function(key, cost, outcome)
  local room = segments_room()
  say(packBytes('>BI7I7I6', outcome, room, segments_reset(), segment))
  if outcome == REFUSED then
    say(packBytes('>I7I7', segments_wait(cost) + 1, segments_wait(room + 1) + 1))
  end
end

--- @when exchange
--- Pairs: the number of a segment, and its charged units (negative for refunds).
merge[SEGMENTS] = function(key, from, to)
  for at = from, to, 2 do
    local k, units = max(0, segment - number(at)), number(at + 1)
    if k <= segments then
      local counted = window_nth(counts, k, width, counter)
      local room = most - counted
      if k < segments then room = most - total end
      segments_add(k, max(-counted, min(units, room)))
    end
  end
  segments_write(key)
end

--- The segment (6 bytes); the number of counters that are not 0 (2), and for each its index from the newest on (2) and
-- its units (7).
state[SEGMENTS] = function()
  local found, said = 0, {}
  local at = string.find(counts, '[^%z]')
  while at do
    local k = floor((at - 1) / width)
    found = found + 1
    said[found] = packBytes('>I2I7', k, window_nth(counts, k, width, counter))
    at = string.find(counts, '[^%z]', (k + 1) * width + 1)
  end
  return packBytes('>I6I2', segment, found) .. concat(said)
end
--- @end
