--- @kind 5 params=2 permits
--- @script decide-concurrency
--- @script one-concurrency
--- @calls PEXPIRE 1
--- @calls ZCOUNT 0 0
--- @calls ZCARD
--- @calls ZSCORE a
--- @calls ZRANGE 0 0
--- @calls ZRANGEBYSCORE 0 0
--- @calls ZREMRANGEBYSCORE 0 0
--- @calls ZREM a
--- @calls ZADD 0 a
--- @calls DEL

--- Permits under one key: a sorted set of their ids by the instant at which they end. A permit counts until its end, so
-- the permits of a crashed holder expire by themselves.
local limit, ttlMs
-- The number of permits that count; whether the key has a foreign value, which the next charge replaces.
local held, isForeign

local nowText = format('%.0f', now)

open[CONCURRENCY] = function(c)
  local p = first[c]
  limit, ttlMs = ARGV[p], ARGV[p + 1]
end

--- @when several
keep[CONCURRENCY] = function(c)
  kept1[c], kept2[c] = held, isForeign
end

recall[CONCURRENCY] = function(c)
  held, isForeign = kept1[c], kept2[c]
end
--- @end

--- The instant at which the permit at `rank` ends; at most `ttlMs` ahead.
local function concurrency_endAt(key, rank)
  local permit = call('ZRANGE', key, rank, rank, 'WITHSCORES')
  return permit[2] and min(tonumber(permit[2]), now + ttlMs) or now
end

--- Milliseconds until `cost` permits are free if none is renewed or released: 0 now, -1 never.
local function concurrency_waitFor(key, cost)
  if cost > limit then return -1 end
  local missing = held + cost - limit
  if cost == 0 or missing <= 0 then return 0 end
  -- Ranks count from the end, as lapsed permits that are not pruned yet are at the front.
  return concurrency_endAt(key, missing - 1 - held) - now
end

local function concurrency_count(key)
  local count = tryCall('ZCOUNT', key, '(' .. nowText, '+inf')
  requireRead(count)
  isForeign = type(count) == 'table'
  held = isForeign and 0 or count
end

look[CONCURRENCY] = function(key, cost)
  concurrency_count(key)
  return concurrency_waitFor(key, cost)
end

take[CONCURRENCY] = function(key, cost, permitId)
  if isForeign then call('DEL', key) end
  for nth = 0, cost - 1 do call('ZADD', key, now + ttlMs, permitId .. '.' .. nth) end
  -- Before any command that may be forbidden, or a new key would remain without an expiry.
  local expiry = tryCall('PEXPIRE', key, ttlMs + slack)
  if type(expiry) == 'table' then
    for nth = 0, cost - 1 do call('ZREM', key, permitId .. '.' .. nth) end
    error(expiry.err)
  end
  held = held + cost
  if call('ZCARD', key) > held then call('ZREMRANGEBYSCORE', key, '-inf', nowText) end
end

--- Releases permits. Redis deletes the key with the last of them.
refund[CONCURRENCY] = function(key, cost, receipt, chargedAt, permitId)
  if isForeign then return end
  for nth = 0, cost - 1 do call('ZREM', key, permitId .. '.' .. nth) end
  concurrency_count(key)
end

--- Returns whether all permits were held.
renew[CONCURRENCY] = function(key, cost, permitId)
  if isForeign then return false end
  local latest, renewed = now + ttlMs, 0
  for nth = 0, cost - 1 do
    local permit = permitId .. '.' .. nth
    local ends = call('ZSCORE', key, permit)
    if ends and tonumber(ends) > now then
      call('ZADD', key, latest, permit)
      call('PEXPIRE', key, latest - now + slack)
      renewed = renewed + 1
    end
  end
  return renewed == cost
end

heal[CONCURRENCY] = function(key)
  if isForeign then return end
  local latest = now + ttlMs
  for _, permit in ipairs(call('ZRANGEBYSCORE', key, '(' .. format('%.0f', latest), '+inf')) do
    call('ZADD', key, latest, permit)
  end
end

--- Free permits (7 bytes), the ms until the last one ends (7); and for a refusal one more than the ms until the
-- cost has room (7), and until there are more free permits (7).
report[CONCURRENCY] = function(key, cost, outcome)
  local ends = now
  if held > 0 then ends = concurrency_endAt(key, -1) end
  -- A larger limit may have taken more permits.
  local free = max(0, limit - held)
  say(packBytes('>BI7I7', outcome, free, ends - now))
  if outcome == REFUSED then
    -- A missing permit may be released at any moment, so this wait is computed only if no permit is missing.
    local wait = concurrency_waitFor(key, cost)
    local room = -1
    if wait == 0 then room = concurrency_waitFor(key, free + 1) end
    say(packBytes('>I7I7', wait + 1, room + 1))
  end
end
