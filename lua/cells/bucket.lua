--- @include "kernels/bucket"

--- A bucket under one key: debt (7 bytes), the instant it was written at (6), when the key expires (6).
local limit, windowMs, capacity, stepMs
-- The debt at the decision's instant; the instant and the expiry as stored, both nil for a key without a state.
local debt, instant, since, expires

open[BUCKET] = function(c)
  local p = first[c]
  limit, windowMs, capacity, stepMs = N[p], N[p + 1], N[p + 2], N[p + 3]
end

--- @when several
keep[BUCKET] = function(c)
  A[c], B[c], C[c], D[c] = debt, instant, since, expires
end

recall[BUCKET] = function(c)
  debt, instant, since, expires = A[c], B[c], C[c], D[c]
end
--- @end

local function bucket_wait(cost)
  local wait = bucket_waitFor(debt, instant, cost, limit, windowMs, capacity, stepMs)
  if wait > 0 then return wait + instant - now end
  return wait
end

local function bucket_write(key)
  local life = bucket_wait(capacity)
  if life <= 0 then
    if since then call('DEL', key) end
    return
  end
  local ends = now + life
  if since and ends <= expires then
    call('SETRANGE', key, '0', packBytes('>I7I6', debt, instant))
    return
  end
  -- A key seen before lives a little longer, so that most charges need not touch its expiry.
  if since then ends = ends + min(LINGER, ceil(capacity * windowMs / limit)) end
  call('SET', key, packBytes('>I7I6I6', debt, instant, ends), 'PX', ends - now + slack)
end

look[BUCKET] = function(key, cost)
  local stored = tryCall('GET', key)
  if stored and #stored == 19 then
    debt, since, expires = unpackBytes('>I7I6I6', stored)
    instant = clock_instant(since, now, windowMs)
    debt = bucket_drain(debt, min(since, instant), instant, limit, stepMs)
  else
    debt, instant, since, expires = 0, now, nil, nil
  end
  return bucket_waitFor(debt, instant, cost, limit, windowMs, capacity, stepMs)
end

take[BUCKET] = function(key, cost)
  debt = bucket_charge(debt, cost, windowMs, capacity)
  bucket_write(key)
end

giveBack[BUCKET] = function(key, cost, receipt, chargedAt)
  if not since then return end
  debt = bucket_refund(debt, instant, cost, receipt, chargedAt, limit, windowMs, stepMs)
  bucket_write(key)
end

heal[BUCKET] = function(key)
  if since and clock_isAhead(since, now, windowMs) then bucket_write(key) end
end

--- Debt (7 bytes), the decision's instant (6).
report[BUCKET] = function(key, cost, outcome)
  n = n + 1
  out[n] = packBytes('>BI7I6', outcome, debt, instant)
end
