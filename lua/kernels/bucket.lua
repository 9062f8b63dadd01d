--- Leaky bucket as a meter, in exact integers: GCRA, token bucket and leaky bucket. Pure.
-- state { debt (unit*ms), at (ms) }   params { limit, windowMs, capacity, stepMs }
-- Invariant: 0 <= debt <= capacity * windowMs < 2^53, so no step below can round.

--- What is left of `debt` at the instant `at`, having been written at `since`.
local function bucket_drain(debt, since, at, limit, stepMs)
  local elapsed
  if stepMs == 1 then
    elapsed = at - since
  else
    elapsed = floor(at / stepMs) * stepMs - floor(since / stepMs) * stepMs
  end
  return max(0, debt - elapsed * limit)
end

--- Milliseconds from `at` until `cost` units have room: 0 now, -1 never.
local function bucket_waitFor(debt, at, cost, limit, windowMs, capacity, stepMs)
  if cost > capacity then return -1 end
  local excess = debt + cost * windowMs - capacity * windowMs
  if excess <= 0 then return 0 end
  local steps = ceil(excess / (limit * stepMs))
  return (floor(at / stepMs) + steps) * stepMs - at
end

--- The debt after charging `cost`; a charge that does not fit fills the bucket.
local function bucket_charge(debt, cost, windowMs, capacity)
  return min(capacity * windowMs, debt + cost * windowMs)
end

--- Whole units that have room.
local function bucket_remaining(debt, windowMs, capacity)
  return floor((capacity * windowMs - debt) / windowMs)
end

--- The debt, and what is counted as given back (of charges from when on), after giving back `cost` units of a charge that
-- left the debt `receipt` at `chargedAt`, when `before` was counted.
local function bucket_refund(debt, given, from, at, cost, receipt, before, chargedAt, limit, windowMs, capacity, stepMs)
  local since = given - before
  if chargedAt < from then since = capacity * windowMs end
  local own, paidFrom = cost * windowMs, min(chargedAt, at)
  local left = bucket_drain(receipt, paidFrom, at, limit, stepMs)
  local owed = min(debt, own, max(left - max(0, since), bucket_drain(own, paidFrom, at, limit, stepMs)))
  if owed == 0 or (since == 0 and debt == left) then return debt - owed, given, from end
  if given + owed < 9007199254740991 then return debt - owed, given + owed, from end
  return debt - owed, 0, at + 1
end
