--- A sliding window of segments. Pure.
-- state of segments { segment, total } and one counter per segment, newest first, `width` bytes each,
-- big-endian; the last is the edge.   params { limit, windowMs, segments, edge }
-- Invariant: counters and total <= limit, or the ceiling where refusals count; that times windowMs is below 2^53, so no
-- step below can round.

local STRICT, DROPPED, WEIGHTED_DOWN = 0, 1, 2
-- Added to what an edge counts for, where refusals count as well.
local WITH_REFUSALS = 4

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

--- What the edge segment counts for, `offset` ms into the current segment.
local function window_edgeUnits(count, offset, segmentMs, edge)
  if edge == STRICT then return count end
  if edge == DROPPED then return 0 end
  local share = (count * (segmentMs - offset)) / segmentMs
  if edge == WEIGHTED_DOWN then return floor(share) end
  return ceil(share)
end

--- The least offset into a segment at which an edge of `count` counts for `room` or less; `segmentMs` if none.
local function window_offsetFor(count, room, segmentMs, edge)
  if edge == DROPPED or count <= room then return 0 end
  if edge == STRICT then return segmentMs end
  if edge == WEIGHTED_DOWN then return floor((segmentMs * (count - room - 1)) / count) + 1 end
  return ceil((segmentMs * (count - room)) / count)
end

--- Milliseconds from `offset` ms into the current segment until `cost` units have room: 0 now, -1 never.
local function window_waitFor(counts, total, offset, cost, limit, segments, segmentMs, edge, width, format)
  if cost > limit then return -1 end
  -- Also where refusals have gone beyond the limit.
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

--- Milliseconds until nothing counted so far counts for anything.
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
