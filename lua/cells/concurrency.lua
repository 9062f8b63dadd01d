--- Places in flight under one key: a sorted set of leases by the instant at which they end. A lease
-- counts while its end lies ahead of now, so a crashed holder gives its place back by itself.
-- params { limit, ttlMs }
-- D how many count, V whether the key holds what is not ours, which the next charge replaces.

local nowText = format('%.0f', now)

--- The instant at which the lease at `rank` ends; one that lies further ahead than `ttlMs` is cut to that.
local function concurrency_endAt(c, key, rank)
  local lease = call('ZRANGE', key, rank, rank, 'WITHSCORES')
  return lease[2] and min(tonumber(lease[2]), now + N[first[c] + 1]) or now
end

--- Milliseconds until `cost` places are free if nobody renews or frees any: 0 now, -1 never.
local function concurrency_waitFor(c, key, cost)
  local limit = N[first[c]]
  if cost > limit then return -1 end
  local missing = D[c] + cost - limit
  if cost == 0 or missing <= 0 then return 0 end
  -- Ranks count from the end: what has lapsed, but is not pruned yet, stands at the front.
  return concurrency_endAt(c, key, missing - 1 - D[c]) - now
end

local function concurrency_count(c, key)
  local count = tryCall('ZCOUNT', key, '(' .. nowText, '+inf')
  V[c] = type(count) == 'table'
  D[c] = V[c] and 0 or count
end

look[CONCURRENCY] = function(c, key, cost)
  concurrency_count(c, key)
  return concurrency_waitFor(c, key, cost)
end

take[CONCURRENCY] = function(c, key, cost, receipt, chargedAt, lease)
  local ends = now + N[first[c] + 1]
  if V[c] then call('DEL', key) end
  for place = 0, cost - 1 do call('ZADD', key, ends, lease .. '.' .. place) end
  D[c] = D[c] + cost
  if call('ZCARD', key) > D[c] then call('ZREMRANGEBYSCORE', key, '-inf', nowText) end
  call('PEXPIRE', key, N[first[c] + 1] + slack)
end

--- A place given back is a place freed. The key goes with its last lease.
giveBack[CONCURRENCY] = function(c, key, cost, receipt, chargedAt, lease)
  if V[c] then return end
  for place = 0, cost - 1 do call('ZREM', key, lease .. '.' .. place) end
  concurrency_count(c, key)
end

renew[CONCURRENCY] = function(c, key, cost, lease)
  if V[c] then return end
  local latest = now + N[first[c] + 1]
  for place = 0, cost - 1 do
    local name = lease .. '.' .. place
    local ends = call('ZSCORE', key, name)
    if ends and tonumber(ends) > now then
      call('ZADD', key, latest, name)
      call('PEXPIRE', key, latest - now + slack)
    end
  end
end

heal[CONCURRENCY] = function(c, key)
  if V[c] then return end
  local latest = now + N[first[c] + 1]
  for _, lease in ipairs(call('ZRANGEBYSCORE', key, '(' .. format('%.0f', latest), '+inf')) do
    call('ZADD', key, latest, lease)
  end
end

report[CONCURRENCY] = function(c, key, cost, admitted)
  out[n + 1] = N[first[c]] - D[c]
  out[n + 2] = admitted and 0 or concurrency_waitFor(c, key, cost)
  out[n + 3] = D[c] == 0 and 0 or concurrency_endAt(c, key, -1) - now
  out[n + 4] = admitted and 0 or concurrency_waitFor(c, key, out[n + 1] + 1)
  n = n + 4
end
