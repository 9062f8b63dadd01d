--- @include "kernels/clock"
--- @include "kernels/bucket"

--- A bucket under one key: 7 bytes of debt, 6 of the instant it was written at.
-- S1 debt, S2 instant, S3 instant as stored or nil.

local function bucket_look(c, key, cost)
  local p = first[c]
  local limit, windowMs, stepMs = N[p], N[p + 1], N[p + 3]
  local stored = call('GET', key)
  local debt, at = 0, now
  S3[c] = nil
  if stored and #stored == 13 then
    local since
    debt, since = unpackBytes('>I7I6', stored)
    S3[c] = since
    at = clock_instant(since, now, windowMs)
    debt = bucket_drain(debt, min(since, at), at, limit, stepMs)
  end
  S1[c], S2[c] = debt, at
  return bucket_waitFor(debt, at, cost, limit, windowMs, N[p + 2], stepMs)
end

local function bucket_wait(c, cost)
  local p = first[c]
  local wait = bucket_waitFor(S1[c], S2[c], cost, N[p], N[p + 1], N[p + 2], N[p + 3])
  if wait > 0 then return wait + S2[c] - now end
  return wait
end

local function bucket_write(c, key)
  local life = bucket_wait(c, N[first[c] + 2])
  if life > 0 then
    call('SET', key, packBytes('>I7I6', S1[c], S2[c]), 'PX', life + slack)
  else
    call('DEL', key)
  end
end

local function bucket_take(c, key, cost)
  local p = first[c]
  S1[c] = bucket_charge(S1[c], cost, N[p + 1], N[p + 2])
  bucket_write(c, key)
end

local function bucket_giveBack(c, key, cost, receipt, chargedAt)
  if not S3[c] then return end
  local p = first[c]
  S1[c] = bucket_refund(S1[c], S2[c], cost, receipt, chargedAt, N[p], N[p + 1], N[p + 3])
  bucket_write(c, key)
end

local function bucket_heal(c, key)
  if S3[c] and clock_isAhead(S3[c], now, N[first[c] + 1]) then bucket_write(c, key) end
end

local function bucket_report(c, cost, admitted)
  local p = first[c]
  out[n + 1] = bucket_remaining(S1[c], N[p + 1], N[p + 2])
  out[n + 2] = admitted and 0 or bucket_wait(c, cost)
  out[n + 3] = bucket_wait(c, N[p + 2])
  out[n + 4] = S1[c]
  n = n + 4
end
