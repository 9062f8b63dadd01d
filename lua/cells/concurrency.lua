--- Places in flight under one key: a sorted set of leases by the instant at which they end.
-- params { limit, ttlMs }
-- S1 how many count, S2 when the last of them ends, S3 whether an end lies further ahead than can be.

--- The instant at which the lease at `rank` ends; one that lies further ahead than `ttlMs` is cut to that.
local function concurrency_endAt(c, key, rank)
  local lease = call('ZRANGE', key, rank, rank, 'WITHSCORES')
  return lease[2] and min(tonumber(lease[2]), now + N[first[c] + 1]) or now
end

--- Milliseconds until `cost` places are free if nobody renews or frees any: 0 now, -1 never.
local function concurrency_waitFor(c, key, cost)
  local limit = N[first[c]]
  if cost > limit then return -1 end
  local missing = S1[c] + cost - limit
  if cost == 0 or missing <= 0 then return 0 end
  -- Ranks count from the end: what has lapsed, but is not pruned yet, stands at the front.
  return concurrency_endAt(c, key, missing - 1 - S1[c]) - now
end

local function concurrency_count(c, key)
  S1[c] = call('ZCOUNT', key, '(' .. format('%.0f', now), '+inf')
end

local function concurrency_look(c, key, cost)
  concurrency_count(c, key)
  return concurrency_waitFor(c, key, cost)
end

--- Forgets what has ended, cuts what ends too late, and lets the key live as long as the last lease.
local function concurrency_settle(c, key)
  local latest = now + N[first[c] + 1]
  call('ZREMRANGEBYSCORE', key, '-inf', format('%.0f', now))
  for _, lease in ipairs(call('ZRANGEBYSCORE', key, '(' .. format('%.0f', latest), '+inf')) do
    call('ZADD', key, latest, lease)
  end
  concurrency_count(c, key)
  if S1[c] > 0 then call('PEXPIRE', key, concurrency_endAt(c, key, -1) - now + slack) end
end

local function concurrency_take(c, key, cost, lease)
  local places = min(cost, N[first[c]] - S1[c])
  for place = 0, places - 1 do call('ZADD', key, now + N[first[c] + 1], lease .. '.' .. place) end
  if places > 0 then concurrency_settle(c, key) end
end

--- A place given back is a place freed.
local function concurrency_giveBack(c, key, cost, lease)
  for place = 0, cost - 1 do call('ZREM', key, lease .. '.' .. place) end
  concurrency_settle(c, key)
end

local function concurrency_renew(c, key, cost, lease)
  for place = 0, cost - 1 do
    local name = lease .. '.' .. place
    local ends = call('ZSCORE', key, name)
    if ends and tonumber(ends) > now then call('ZADD', key, now + N[first[c] + 1], name) end
  end
  concurrency_settle(c, key)
end

local function concurrency_heal(c, key)
  local last = call('ZRANGE', key, -1, -1, 'WITHSCORES')[2]
  if last and tonumber(last) > now + N[first[c] + 1] then concurrency_settle(c, key) end
end

local function concurrency_report(c, key, cost, admitted)
  out[n + 1] = N[first[c]] - S1[c]
  out[n + 2] = admitted and 0 or concurrency_waitFor(c, key, cost)
  out[n + 3] = S1[c] == 0 and 0 or concurrency_endAt(c, key, -1) - now
  out[n + 4] = 0
  n = n + 4
end
