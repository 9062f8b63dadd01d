--- @kind 1 params=4 together
--- @script decide-bucket own=1
--- @script decide-buckets joint
--- @script one-bucket own=1

--- @kernel
--- Leaky bucket as a meter, in exact integers: GCRA, token bucket and leaky bucket. Pure.
-- state { debt (unit*ms), at (ms) }   params { limit, windowMs, capacity, stepMs }
-- Invariant: 0 <= debt <= bucket_maxDebt(windowMs, capacity) < 2^53, of the limit that charged it, so no step below can round.

-- As far as numbers are exact.
local MOST_DEBT = 9007199254740991

-- Added to the instant from which charges are counted, where a part of a settlement was forgiven just before it.
local FORGIVEN = 140737488355328

--- The largest debt: a full bucket and as much again, as far as numbers are exact.
local function bucket_maxDebt(windowMs, capacity)
  return min(MOST_DEBT, 2 * capacity * windowMs)
end

--- Units·ms of a stored `debt` that each ms pays off: `limit`, except where a larger limit on the same state owed more than
-- two windows pay off. That is paid off in two windows.
local function bucket_paceOf(debt, limit, windowMs, capacity)
  if debt <= 2 * max(limit, capacity) * windowMs then return limit end
  return ceil(debt / (2 * windowMs))
end

--- The debt that drains at `pace`: rounded up to one that is gone after two windows, so that a smaller debt is gone no later.
local function bucket_atPace(debt, pace, limit, windowMs)
  if pace == limit then return debt end
  return pace * 2 * windowMs
end

--- The part of a `debt`, written at `since`, that is left at the instant `at`.
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
  local excess = debt - (capacity - cost) * windowMs
  -- A cost of 0 has room even if the debt exceeds the capacity.
  if excess <= 0 or cost < min(1, capacity) then return 0 end
  local steps = ceil(excess / (limit * stepMs))
  return (floor(at / stepMs) + steps) * stepMs - at
end

--- The debt after charging `cost`; a charge that does not fit fills the bucket.
local function bucket_charge(debt, cost, windowMs, capacity)
  return min(capacity * windowMs, debt + cost * windowMs)
end

--- The debt after charging `cost` whatever room there is. The rest of a `cost` beyond the largest debt is forgiven.
local function bucket_debit(debt, cost, windowMs, capacity)
  return min(bucket_maxDebt(windowMs, capacity), debt + cost * windowMs)
end

--- Whole units that have room.
local function bucket_remaining(debt, windowMs, capacity)
  return floor((capacity * windowMs - debt) / windowMs)
end

--- A state's debt as it was `written`, of which `debt` is left, the count of refunds and the instant from which charges
-- are included, after a refund of `cost` units. The charge left the debt `receipt` at `chargedAt`, when the count was
-- `before`. Nothing is refunded of charges from before a part of a settlement was forgiven.
local function bucket_refund(written, debt, refunded, from, at, cost, receipt, before, chargedAt, pace, windowMs, capacity, stepMs)
  local forgiven, others = 0, max(0, refunded - before)
  if from >= FORGIVEN then forgiven = FORGIVEN end
  if chargedAt < from - forgiven then
    if forgiven > 0 then return written, refunded, from end
    others = capacity * windowMs
  end
  local own, paidFrom = cost * windowMs, min(chargedAt, at)
  local left = bucket_drain(receipt, paidFrom, at, pace, stepMs)
  local owed = min(written, debt, own, max(left - others, bucket_drain(own, paidFrom, at, pace, stepMs)))
  if owed == 0 then return written, refunded, from end
  if others == 0 and debt == left then return max(0, written - own), refunded, from end
  if refunded + owed < MOST_DEBT then return written - owed, refunded + owed, from end
  return written - owed, 0, forgiven + at + 1
end

--- @state
--- A bucket under one key: debt (7 bytes), the instant it was written at (6), when the key expires (6); and if refunds
-- must be distinguished, their sum (7) and the instant from which charges are included (6).
local own, limit, windowMs, capacity, stepMs
-- By cell: the debt of a new client, the bytes of that state at the present instant, and its life as text. Most new
-- clients share these.
local newDebtOf, newStateOf, newLifeOf = {}, {}, {}
-- The debt at the decision's instant; the instant and the expiry as stored, both nil for a key without a state; the
-- stored record of refunds, usually ''.
local debt, instant, since, expires, refunds
-- Units·ms of the debt that each ms pays off. If that is not the limit, the debt as it was written, else nil.
local pace, beyond

prepare[BUCKET] = function(c)
  newDebtOf[c] = nil
end

--- @when joint
--- Debt (7 bytes), the instant it was written at (6); none if the debt is 0 and nothing was refunded.
size[BUCKET] = function()
  return 13
end
--- @end

open[BUCKET] = function(c)
  local p = first[c]
  own = c
  limit, windowMs, capacity, stepMs = ARGV[p], ARGV[p + 1], ARGV[p + 2], ARGV[p + 3]
end

--- @when several
keep[BUCKET] = function(c)
  kept1[c], kept2[c], kept3[c], kept4[c], kept5[c], kept6[c] = debt, instant, since, expires, refunds, beyond
end

recall[BUCKET] = function(c)
  debt, instant, since, expires, refunds, beyond = kept1[c], kept2[c], kept3[c], kept4[c], kept5[c], kept6[c]
  pace = limit
  if beyond then pace = bucket_paceOf(beyond, limit, windowMs, capacity) end
end
--- @end

local function bucket_wait(cost)
  local wait = bucket_waitFor(debt, instant, cost, pace, windowMs, capacity, stepMs)
  if wait > 0 then return wait + instant - now end
  return wait
end

--- Writes the state of a key that had none.
local function bucket_writeFirst(key)
  if newDebtOf[own] ~= debt then
    local life = bucket_wait(capacity)
    newDebtOf[own], newStateOf[own] = debt, packBytes('>I7I6I6', debt, now, now + life)
    newLifeOf[own] = format('%d', life + slack)
  end
  call('SET', key, newStateOf[own], 'PX', newLifeOf[own])
end

--- Writes the state of a key that had one.
local function bucket_write(key)
  -- Refunds must be stored for as long as their charges would count.
  if debt == 0 and refunds == '' then
    call('DEL', key)
    return
  end
  local ends = now + max(1, bucket_wait(capacity))
  if ends <= expires then
    local state = packBytes('>I7I6', debt, instant)
    if refunds ~= '' then state = packBytes('>I7I6I6', debt, instant, expires) .. refunds end
    call('SETRANGE', key, '0', state)
    return
  end
  -- A key in use lives slightly longer, so that most charges need not change its expiry.
  ends = ends + min(LINGER, ceil(capacity * windowMs / limit))
  call('SET', key, packBytes('>I7I6I6', debt, instant, ends) .. refunds, 'PX', ends - now + slack)
end

--- Writes the state of a key that had one, or of a cell that shares its key.
local function bucket_rewrite(key)
--- @when joint
  if joint > 0 then
    local life = 0
    if debt > 0 then life = max(1, bucket_wait(capacity)) end
    joint_put(packBytes('>I7I6', debt, instant), refunds, life)
  else
--- @end
  bucket_write(key)
--- @when joint
  end
--- @end
end

--- Sets the pace at which the debt is paid off from here on.
local function bucket_pace()
  pace, beyond = bucket_paceOf(debt, limit, windowMs, capacity), nil
  if pace ~= limit then beyond = debt end
end

--- Brings the stored state to the present.
local function bucket_bring()
  instant = clock_instant(since, now, windowMs)
  bucket_pace()
  debt = bucket_drain(bucket_atPace(debt, pace, limit, windowMs), min(since, instant), instant, pace, stepMs)
end

--- @when joint
local function bucket_takeOut()
  local stored = storedOf[joint]
  debt, refunds = 0, joint_refunds(mine)
  if stored then debt, since = unpackBytes('>I7I6', stored, after[mine] + 1) end
  if debt > 0 or refunds ~= '' then
    bucket_bring()
  else
    instant, since, pace, beyond = now, nil, limit, nil
  end
end
--- @end

look[BUCKET] = function(key, cost)
--- @when joint
  if joint > 0 then
    bucket_takeOut()
  else
--- @end
  local stored = tryCall('GET', key)
  local bytes = stored and #stored
  if bytes == 19 or bytes == 32 then
    if bytes == 19 then
      debt, since, expires = unpackBytes('>I7I6I6', stored)
      refunds = ''
    else
      debt, since, expires, refunds = unpackBytes('>I7I6I6c13', stored)
    end
    bucket_bring()
  else
    requireRead(stored)
    debt, instant, since, expires, refunds = 0, now, nil, nil, ''
    pace, beyond = limit, nil
  end
--- @when joint
  end
--- @end
  return bucket_waitFor(debt, instant, cost, pace, windowMs, capacity, stepMs)
end

--- @when together
room[BUCKET] = function()
  return bucket_remaining(debt, windowMs, capacity)
end
--- @end

take[BUCKET] = function(key, cost)
  -- Filling the bucket would take from a debt beyond its capacity.
  if debt > capacity * windowMs then
    heal[BUCKET](key)
    return
  end
  debt = bucket_charge(debt, cost, windowMs, capacity)
  pace, beyond = limit, nil
--- @when joint
  if joint > 0 then
    joint_put(packBytes('>I7I6', debt, instant), refunds, bucket_wait(capacity))
  else
--- @end
  if since then bucket_write(key) else bucket_writeFirst(key) end
--- @when joint
  end
--- @end
end

--- The debt as it was written, while it is above 0.
local function bucket_written()
  return beyond or debt + (MOST_DEBT - bucket_drain(MOST_DEBT, min(since, instant), instant, limit, stepMs))
end

--- Writes another debt as of the instant of the state, from which other limits on the same state drain it.
local function bucket_writeAt(key, written)
  local at = instant
  since = min(since, at)
  debt, instant = written, since
  bucket_pace()
  bucket_rewrite(key)
  debt, instant = bucket_drain(bucket_atPace(debt, pace, limit, windowMs), since, at, pace, stepMs), at
end

refund[BUCKET] = function(key, cost, receipt, chargedAt, _, before)
  if not since or debt == 0 then return end
  local refunded, from = 0, 0
  if refunds ~= '' then refunded, from = unpackBytes('>I7I6', refunds) end
  local written, earlierPace = bucket_written(), pace
  -- A larger limit on the same state, within its capacity, has drained earlier charges at least twice as fast.
  if pace ~= limit then earlierPace = 2 * pace end
  local left, newRefunded, newFrom = bucket_refund(
    written, debt, refunded, from, instant, cost, receipt, before, chargedAt, earlierPace, windowMs, capacity, stepMs
  )
  if left == written then return end
  if newRefunded ~= refunded or newFrom ~= from then refunds = packBytes('>I7I6', newRefunded, newFrom) end
  bucket_writeAt(key, left)
end

--- @when debit
debit[BUCKET] = function(key, cost)
  local most = bucket_maxDebt(windowMs, capacity)
  -- Without the earlier charges, less would have been forgiven: none of them is refunded.
  if cost * windowMs > most - debt then
    refunds = packBytes('>I7', refunds == '' and 0 or unpackBytes('>I7', refunds)) .. packBytes('>I6', FORGIVEN + instant + 1)
  end
  -- By a larger limit on the same state.
  if debt > most then
    bucket_writeAt(key, bucket_written())
    return
  end
  debt = bucket_debit(debt, cost, windowMs, capacity)
  pace, beyond = limit, nil
  if not since then expires = now end
  since = instant
  bucket_rewrite(key)
end
--- @end

heal[BUCKET] = function(key)
  if since and clock_isAhead(since, now, windowMs) then bucket_rewrite(key) end
end

--- Debt (7 bytes), the decision's instant (6); the stored record of refunds. A debt that is paid off at another pace than the
-- limit's is reported as stored, with the instant when it was written.
report[BUCKET] = function(key, cost, outcome)
  local said = outcome
  if refunds ~= '' then said = outcome + REFUNDS end
  if beyond then
    say(packBytes('>BI7I6', said, beyond, min(since, instant)) .. refunds)
  else
    say(packBytes('>BI7I6', said, debt, instant) .. refunds)
  end
end
