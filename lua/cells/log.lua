--- @include "kernels/clock"
--- @include "kernels/log"

--- An exact log under one key, shared by all log limits on that key.
-- params { most, longestMs, and for each limit: limit, windowMs }
-- S1 the log, S2 the decision's instant, S3 whether it was read from a future that cannot be.

--- The log as it would stand if nothing in it lay ahead of now.
local function log_broughtBack(log)
  local k = 1
  while k <= #log / 6 and log_nth(log, k) > now do k = k + 1 end
  return sub(log, 1, #log - 6 * (k - 1)) .. rep(packBytes('>I6', now), k - 1)
end

local function log_wait(c, pair, cost)
  local wait = log_waitFor(S1[c], S2[c], cost, N[pair], N[pair + 1])
  if wait > 0 then return wait + S2[c] - now end
  return wait
end

local function log_look(c, key, cost)
  local p = first[c]
  local log = call('GETRANGE', key, -6 * N[p], -1)
  local at = now
  S3[c] = false
  if #log > 0 then
    local newest = log_nth(log, 1)
    at = clock_instant(newest, now, N[p + 1])
    if clock_isAhead(newest, now, N[p + 1]) then
      log = log_broughtBack(log)
      S3[c] = true
    end
  end
  S1[c], S2[c] = log, at
  local longest = 0
  for pair = p + 2, p + last[c], 2 do
    local wait = log_waitFor(log, at, cost, N[pair], N[pair + 1])
    if wait < 0 then return wait end
    if wait > longest then longest = wait end
  end
  return longest
end

--- Keeps only entries that still count for a limit, so the state is as small as it can be.
local function log_write(c, key)
  local p = first[c]
  local log = S1[c]
  local keep = 0
  for pair = p + 2, p + last[c], 2 do keep = max(keep, log_live(log, S2[c], N[pair + 1], N[pair])) end
  if keep == 0 then
    S1[c] = ''
    call('DEL', key)
    return
  end
  if keep * 6 < #log then
    log = sub(log, -6 * keep)
    S1[c] = log
  end
  call('SET', key, log, 'PX', log_nth(log, 1) + N[p + 1] - now + slack)
end

local function log_take(c, key, cost)
  S1[c] = S1[c] .. rep(packBytes('>I6', S2[c]), cost)
  log_write(c, key)
end

local function log_giveBack(c, key, cost, receipt)
  local log = S1[c]
  local newer = 0
  while newer < #log / 6 and log_nth(log, newer + 1) > receipt do newer = newer + 1 end
  local equal = 0
  while equal < cost and newer + equal < #log / 6 and log_nth(log, newer + equal + 1) == receipt do
    equal = equal + 1
  end
  if equal == 0 then return end
  S1[c] = sub(log, 1, #log - 6 * (newer + equal)) .. sub(log, #log - 6 * newer + 1)
  log_write(c, key)
end

local function log_heal(c, key)
  if S3[c] then log_write(c, key) end
end

local function log_report(c, cost, admitted)
  local p = first[c]
  local log, at = S1[c], S2[c]
  for pair = p + 2, p + last[c], 2 do
    local limit, windowMs = N[pair], N[pair + 1]
    out[n + 1] = limit - log_live(log, at, windowMs, limit)
    out[n + 2] = admitted and 0 or log_wait(c, pair, cost)
    out[n + 3] = #log == 0 and 0 or max(0, log_nth(log, 1) + windowMs - now)
    out[n + 4] = at
    n = n + 4
  end
end
