--- @include "kernels/bucket"

--- A bucket under one key: debt (7 bytes), the instant it was written at (6), when the key expires (6).
-- D debt, T the decision's instant, V the instant as stored or nil, E the expiry as stored.

local function bucket_wait(c, cost)
  local p = first[c]
  local wait = bucket_waitFor(D[c], T[c], cost, N[p], N[p + 1], N[p + 2], N[p + 3])
  if wait > 0 then return wait + T[c] - now end
  return wait
end

local function bucket_write(c, key)
  local p = first[c]
  local life = bucket_wait(c, N[p + 2])
  L[c] = life
  if life <= 0 then
    if V[c] then call('DEL', key) end
    return
  end
  local ends = now + life
  if V[c] and ends <= E[c] then
    call('SETRANGE', key, '0', packBytes('>I7I6', D[c], T[c]))
    return
  end
  -- A key seen before lives a little longer, so that most charges need not touch its expiry.
  if V[c] then ends = ends + min(LINGER, ceil(N[p + 2] * N[p + 1] / N[p])) end
  call('SET', key, packBytes('>I7I6I6', D[c], T[c], ends), 'PX', ends - now + slack)
end

look[BUCKET] = function(c, key, cost)
  local p = first[c]
  local limit, windowMs, stepMs = N[p], N[p + 1], N[p + 3]
  local stored = tryCall('GET', key)
  if stored and #stored == 19 then
    local debt, since, ends = unpackBytes('>I7I6I6', stored)
    local at = clock_instant(since, now, windowMs)
    D[c], T[c], V[c], E[c] = bucket_drain(debt, min(since, at), at, limit, stepMs), at, since, ends
  else
    D[c], T[c], V[c] = 0, now, nil
  end
  L[c] = nil
  return bucket_waitFor(D[c], T[c], cost, limit, windowMs, N[p + 2], stepMs)
end

take[BUCKET] = function(c, key, cost)
  local p = first[c]
  D[c] = bucket_charge(D[c], cost, N[p + 1], N[p + 2])
  bucket_write(c, key)
end

giveBack[BUCKET] = function(c, key, cost, receipt, chargedAt)
  if not V[c] then return end
  local p = first[c]
  D[c] = bucket_refund(D[c], T[c], cost, receipt, chargedAt, N[p], N[p + 1], N[p + 3])
  bucket_write(c, key)
end

heal[BUCKET] = function(c, key)
  if V[c] and clock_isAhead(V[c], now, N[first[c] + 1]) then bucket_write(c, key) end
end

report[BUCKET] = function(c, key, cost, admitted)
  local p = first[c]
  out[n + 1] = bucket_remaining(D[c], N[p + 1], N[p + 2])
  out[n + 2] = admitted and 0 or bucket_wait(c, cost)
  out[n + 3] = L[c] or bucket_wait(c, N[p + 2])
  out[n + 4] = admitted and D[c] or bucket_wait(c, out[n + 1] + 1)
  n = n + 4
end
