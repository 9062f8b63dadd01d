--- @include "kernels/clock"
--- @include "kernels/window"

--- A fixed window under one key: 7 bytes of count, 6 of the window's start.
-- params { limit, windowMs, 0, byClock }
-- S1 count, S2 start, S3 start as stored or nil.

local function counter_endsIn(c)
  return S2[c] + N[first[c] + 1] - now
end

local function counter_look(c, key, cost)
  local p = first[c]
  local windowMs = N[p + 1]
  local stored = call('GET', key)
  local at, count, start = now, 0, nil
  S3[c] = nil
  if stored and #stored == 13 then
    local units, since = unpackBytes('>I7I6', stored)
    S3[c] = since
    at = clock_instant(since, now, windowMs)
    if at < since + windowMs then
      count = units
      if since <= at then start = since end
    end
  end
  S1[c], S2[c] = count, start or window_startOf(at, windowMs, N[p + 3] == 1)
  return window_counterWaitFor(count, counter_endsIn(c), cost, N[p])
end

local function counter_write(c, key)
  if S1[c] > 0 then
    call('SET', key, packBytes('>I7I6', S1[c], S2[c]), 'PX', counter_endsIn(c) + slack)
  else
    call('DEL', key)
  end
end

local function counter_take(c, key, cost)
  S1[c] = min(N[first[c]], S1[c] + cost)
  counter_write(c, key)
end

local function counter_giveBack(c, key, cost, receipt)
  if not S3[c] or S2[c] ~= receipt then return end
  S1[c] = max(0, S1[c] - cost)
  counter_write(c, key)
end

local function counter_heal(c, key)
  if S3[c] and clock_isAhead(S3[c], now, N[first[c] + 1]) then counter_write(c, key) end
end

local function counter_report(c, cost, admitted)
  local limit = N[first[c]]
  out[n + 1] = limit - S1[c]
  out[n + 2] = admitted and 0 or window_counterWaitFor(S1[c], counter_endsIn(c), cost, limit)
  out[n + 3] = S1[c] == 0 and 0 or counter_endsIn(c)
  out[n + 4] = S2[c]
  n = n + 4
end
