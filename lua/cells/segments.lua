--- @include "kernels/window"

--- A sliding window of segments under one key: the number of the newest segment (6 bytes), then the
-- total and the counters, newest first, each as wide as the limit needs.
-- params { limit, windowMs, segments, edge }; W the width of a counter, F its format.
-- C counters, D total, S segment, O offset into it, T the decision's instant, V the segment as stored or nil.

prepare[SEGMENTS] = function(c)
  local width, top = 1, 256
  while top <= N[first[c]] do
    width = width + 1
    top = top * 256
  end
  W[c], F[c] = width, '>I' .. width
end

local function segments_wait(c, cost)
  local p = first[c]
  local segments, segmentMs = N[p + 2], N[p + 1] / N[p + 2]
  local wait = window_waitFor(C[c], D[c], O[c], cost, N[p], segments, segmentMs, N[p + 3], W[c], F[c])
  if wait > 0 then return wait + T[c] - now end
  return wait
end

local function segments_reset(c)
  local p = first[c]
  local reset = window_resetAfter(C[c], O[c], N[p + 2], N[p + 1] / N[p + 2], N[p + 3], W[c], F[c])
  if reset > 0 then return reset + T[c] - now end
  return 0
end

local function segments_write(c, key)
  if segments_reset(c) == 0 then
    if V[c] then call('DEL', key) end
    return
  end
  -- The longest that a unit in the newest segment can count for: written once a segment, whatever follows in it.
  local life = N[first[c] + 1] + N[first[c] + 1] / N[first[c] + 2] - O[c] + T[c] - now
  call('SET', key, packBytes('>I6', S[c]) .. packBytes(F[c], D[c]) .. C[c], 'PX', life + slack)
end

--- Adds `units` (or takes, if negative) to the `k`-th counter.
local function segments_add(c, k, units)
  local width, counts = W[c], C[c]
  local count = packBytes(F[c], window_nth(counts, k, width, F[c]) + units)
  C[c] = sub(counts, 1, k * width) .. count .. sub(counts, (k + 1) * width + 1)
  if k < N[first[c] + 2] then D[c] = D[c] + units end
end

local function segments_room(c)
  local p = first[c]
  local edge = window_nth(C[c], N[p + 2], W[c], F[c])
  return max(0, N[p] - D[c] - window_edgeUnits(edge, O[c], N[p + 1] / N[p + 2], N[p + 3]))
end

--- A state from a future that cannot be is read as if its newest segment were this one. What a weighted
-- edge counts for depends on the instant, so there it moves into the window proper, where it counts in full.
local function segments_bringBack(c)
  local p = first[c]
  local segments, width = N[p + 2], W[c]
  if N[p + 3] < WEIGHTED_DOWN then return end
  local edge = window_nth(C[c], segments, width, F[c])
  C[c] = sub(C[c], 1, segments * width) .. rep('\0', width)
  segments_add(c, segments - 1, min(edge, N[p] - D[c]))
end

look[SEGMENTS] = function(c, key, cost)
  local p = first[c]
  local windowMs, segments, width, format = N[p + 1], N[p + 2], W[c], F[c]
  local segmentMs = windowMs / segments
  local stored = tryCall('GET', key)
  if stored and #stored ~= 6 + (segments + 2) * width then stored = false end
  local at, newest = now, nil
  if stored then
    newest = unpackBytes('>I6', stored)
    at = clock_instant(newest * segmentMs, now, windowMs)
  end
  local segment = floor(at / segmentMs)
  local by = stored and max(0, segment - newest) or segments + 1
  if by > segments then
    D[c], C[c] = 0, rep('\0', (segments + 1) * width)
  else
    D[c], C[c] = unpackBytes(format, stored, 7), sub(stored, 7 + width)
    if by > 0 then
      D[c] = D[c] - window_leaving(C[c], by, segments, width, format)
      C[c] = rep('\0', by * width) .. sub(C[c], 1, (segments + 1 - by) * width)
    end
  end
  S[c], O[c], T[c], V[c] = segment, at - segment * segmentMs, at, newest
  if newest and clock_isAhead(newest * segmentMs, now, windowMs) then segments_bringBack(c) end
  return segments_wait(c, cost)
end

take[SEGMENTS] = function(c, key, cost)
  segments_add(c, 0, min(cost, segments_room(c)))
  if V[c] == S[c] then
    call('SETRANGE', key, '6', packBytes(F[c], D[c]) .. sub(C[c], 1, W[c]))
  else
    segments_write(c, key)
  end
end

giveBack[SEGMENTS] = function(c, key, cost, receipt)
  local k = S[c] - receipt
  if not V[c] or k < 0 or k > N[first[c] + 2] then return end
  segments_add(c, k, -min(cost, window_nth(C[c], k, W[c], F[c])))
  segments_write(c, key)
end

heal[SEGMENTS] = function(c, key)
  local p = first[c]
  if V[c] and clock_isAhead(V[c] * N[p + 1] / N[p + 2], now, N[p + 1]) then segments_write(c, key) end
end

report[SEGMENTS] = function(c, key, cost, admitted)
  out[n + 1] = segments_room(c)
  out[n + 2] = admitted and 0 or segments_wait(c, cost)
  out[n + 3] = segments_reset(c)
  out[n + 4] = admitted and S[c] or segments_wait(c, out[n + 1] + 1)
  n = n + 4
end
