--- @include "kernels/counter"

--- A fixed window under one key: count (7 bytes) and start (6). The key expires with its window.
-- params { limit, windowMs, 0, byClock }
-- D count, T start, V the start as stored or nil.

local function counter_endsIn(c)
  return T[c] + N[first[c] + 1] - now
end

local function counter_write(c, key)
  if D[c] == 0 then
    call('DEL', key)
  elseif V[c] == T[c] then
    call('SETRANGE', key, '0', packBytes('>I7', D[c]))
  else
    call('SET', key, packBytes('>I7I6', D[c], T[c]), 'PX', counter_endsIn(c) + slack)
  end
end

look[COUNTER] = function(c, key, cost)
  local p = first[c]
  local windowMs = N[p + 1]
  local stored = tryCall('GET', key)
  local at, count, start = now, 0, nil
  V[c] = nil
  if stored and #stored == 13 then
    local units, since = unpackBytes('>I7I6', stored)
    V[c] = since
    at = clock_instant(since, now, windowMs)
    if at < since + windowMs then
      count = units
      if since <= at then start = since end
    end
  end
  D[c], T[c] = count, start or counter_startOf(at, windowMs, N[p + 3] == 1)
  return counter_waitFor(count, counter_endsIn(c), cost, N[p])
end

take[COUNTER] = function(c, key, cost)
  D[c] = min(N[first[c]], D[c] + cost)
  counter_write(c, key)
end

giveBack[COUNTER] = function(c, key, cost, receipt)
  if not V[c] or T[c] ~= receipt then return end
  D[c] = max(0, D[c] - cost)
  counter_write(c, key)
end

heal[COUNTER] = function(c, key)
  if V[c] and clock_isAhead(V[c], now, N[first[c] + 1]) then counter_write(c, key) end
end

report[COUNTER] = function(c, key, cost, admitted)
  local limit = N[first[c]]
  out[n + 1] = limit - D[c]
  out[n + 2] = admitted and 0 or counter_waitFor(D[c], counter_endsIn(c), cost, limit)
  out[n + 3] = D[c] == 0 and 0 or counter_endsIn(c)
  out[n + 4] = admitted and T[c] or counter_waitFor(D[c], counter_endsIn(c), out[n + 1] + 1, limit)
  n = n + 4
end
