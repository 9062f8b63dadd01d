--- @include "kernels/clock"
--- @include "kernels/window"

--- A sliding window of segments under one key: 6 bytes for the number of the newest segment, then the
-- total and the counters, each as wide as the limit needs.
-- params { limit, windowMs, segments, edge }, to which `segments_prepare` adds width and format.
-- S1 counters, S2 total, S3 segment, S4 offset, S5 the decision's instant, S6 start as stored or nil.

--- Bytes that a counter up to `limit` needs.
local function segments_prepare(c)
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
  local wait = window_waitFor(S1[c], S2[c], S4[c], cost, N[p], segments, segmentMs, N[p + 3], W[c], F[c])
  if wait > 0 then return wait + S5[c] - now end
  return wait
end

local function segments_reset(c)
  local p = first[c]
  local reset = window_resetAfter(S1[c], S4[c], N[p + 2], N[p + 1] / N[p + 2], N[p + 3], W[c], F[c])
  if reset > 0 then return reset + S5[c] - now end
  return 0
end

local function segments_look(c, key, cost)
  local p = first[c]
  local windowMs, segments, width, format = N[p + 1], N[p + 2], W[c], F[c]
  local segmentMs = windowMs / segments
  local stored = call('GET', key)
  if stored and #stored ~= 6 + (segments + 2) * width then stored = false end
  local at, newest = now, nil
  if stored then
    newest = unpackBytes('>I6', stored)
    at = clock_instant(newest * segmentMs, now, windowMs)
  end
  local segment = floor(at / segmentMs)
  local by = stored and max(0, segment - newest) or segments + 1
  local total, counts
  if by > segments then
    total, counts = 0, rep('\0', (segments + 1) * width)
  else
    total, counts = unpackBytes(format, stored, 7), sub(stored, 7 + width)
    if by > 0 then
      total = total - window_leaving(counts, by, segments, width, format)
      counts = rep('\0', by * width) .. sub(counts, 1, (segments + 1 - by) * width)
    end
  end
  S1[c], S2[c], S3[c], S4[c], S5[c] = counts, total, segment, at - segment * segmentMs, at
  S6[c] = newest and newest * segmentMs
  return segments_wait(c, cost)
end

local function segments_write(c, key)
  local life = segments_reset(c)
  if life > 0 then
    local state = packBytes('>I6', S3[c]) .. packBytes(F[c], S2[c]) .. S1[c]
    call('SET', key, state, 'PX', life + slack)
  else
    call('DEL', key)
  end
end

--- Adds `units` (or takes, if negative) to the `k`-th counter.
local function segments_add(c, k, units)
  local width, format, counts = W[c], F[c], S1[c]
  local count = window_nth(counts, k, width, format) + units
  S1[c] = sub(counts, 1, k * width) .. packBytes(format, count) .. sub(counts, (k + 1) * width + 1)
  if k < N[first[c] + 2] then S2[c] = S2[c] + units end
end

local function segments_room(c)
  local p = first[c]
  local edge = window_nth(S1[c], N[p + 2], W[c], F[c])
  return max(0, N[p] - S2[c] - window_edgeUnits(edge, S4[c], N[p + 1] / N[p + 2], N[p + 3]))
end

local function segments_take(c, key, cost)
  segments_add(c, 0, min(cost, segments_room(c)))
  segments_write(c, key)
end

local function segments_giveBack(c, key, cost, receipt)
  local k = S3[c] - receipt
  if not S6[c] or k < 0 or k > N[first[c] + 2] then return end
  segments_add(c, k, -min(cost, window_nth(S1[c], k, W[c], F[c])))
  segments_write(c, key)
end

local function segments_heal(c, key)
  if S6[c] and clock_isAhead(S6[c], now, N[first[c] + 1]) then segments_write(c, key) end
end

local function segments_report(c, cost, admitted)
  out[n + 1] = segments_room(c)
  out[n + 2] = admitted and 0 or segments_wait(c, cost)
  out[n + 3] = segments_reset(c)
  out[n + 4] = S3[c]
  n = n + 4
end
