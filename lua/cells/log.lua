--- @include "kernels/log"

--- An exact log under one key, shared by all log limits on that key. A header, then 6 bytes per entry:
-- the newest entry (6), when the key expires (6), how many entries (4), and for each limit the index of
-- its first entry that counts (4) and that entry (6). So a decision reads the header, and entries only
-- where some have lapsed since the last charge; its cost does not grow with the limit.
-- params { most, longestMs, and for each limit: limit, windowMs }
-- D how many entries, O the newest or nil, T the decision's instant, E the expiry as stored or nil, C all
-- entries where they had to be read, S the first that is not yet done with; by limit (the index of its params): H first that counts, G that entry.

local CHUNK = 16
local source, base, chunk, chunkFrom = '', 0, '', 0

--- Which log `log_entry` reads.
local function log_open(c, key)
  source, base = key, W[c]
  chunk, chunkFrom = C[c] or '', 0
end

--- The `i`-th entry, from 0. Reads some at a time, since those after it are asked for next.
local function log_entry(i)
  local at = (i - chunkFrom) * 6
  if at < 0 or at >= #chunk then
    chunk = call('GETRANGE', source, base + i * 6, base + (i + CHUNK) * 6 - 1)
    chunkFrom, at = i, 0
  end
  return (unpackBytes('>I6', chunk, at + 1))
end

--- Moves `H` and `G` of a limit to the first entry that counts at `at`, no more than `limit` from the newest.
local function log_advance(c, pair, from, at)
  local total, limit = D[c], N[pair]
  local live = max(log_firstLive(log_entry, from, total, at, N[pair + 1]), total - limit)
  H[pair], G[pair] = live, live < total and log_entry(live) or 0
end

local function log_wait(c, pair, cost)
  local total = D[c]
  local wait = log_waitFor(log_entry, total, total - H[pair], T[c], cost, N[pair], N[pair + 1])
  if wait > 0 then return wait + T[c] - now end
  return wait
end

--- The first entry that counts for any limit: what lies before it can go.
local function log_firstKept(c)
  local kept = D[c]
  for pair = first[c] + 2, first[c] + last[c], 2 do kept = min(kept, H[pair]) end
  return kept
end

local function log_header(c)
  local header = packBytes('>I6I6I4', O[c], E[c], D[c])
  for pair = first[c] + 2, first[c] + last[c], 2 do header = header .. packBytes('>I4I6', H[pair], G[pair]) end
  return header
end

--- Writes the whole log down: its entries from `kept` on are `entries`.
local function log_rewrite(c, key, kept, entries, linger)
  D[c] = D[c] - kept
  for pair = first[c] + 2, first[c] + last[c], 2 do H[pair] = H[pair] - kept end
  E[c] = O[c] + N[first[c] + 1] + linger
  call('SET', key, log_header(c) .. entries, 'PX', E[c] - now + slack)
end

--- Moves all limits of a log that had to be read to what counts at `at`.
local function log_advanceAll(c, key, at)
  log_open(c, key)
  for pair = first[c] + 2, first[c] + last[c], 2 do log_advance(c, pair, 0, at) end
end

--- Takes `entries` for the whole log, in place of what is stored.
local function log_replace(c, key, entries)
  C[c], D[c] = entries, #entries / 6
  O[c] = D[c] > 0 and unpackBytes('>I6', entries, #entries - 5) or nil
  log_advanceAll(c, key, T[c])
end

--- Writes down what `log_replace` took: all that counted when its newest entry came, should the clock step back.
local function log_rewriteReplaced(c, key)
  -- With its newest entry gone, all that is left may have lapsed long since: there is no life to give such a key.
  if D[c] == 0 or O[c] + N[first[c] + 1] + slack <= now then
    call('DEL', key)
    return
  end
  log_advanceAll(c, key, O[c])
  log_rewrite(c, key, 0, C[c], 0)
  log_advanceAll(c, key, T[c])
end

prepare[LOG] = function(c)
  W[c] = 16 + 5 * (last[c] - 1)
  F[c] = tostring(W[c] - 1)
end

look[LOG] = function(c, key, cost)
  local p = first[c]
  local header = tryCall('GETRANGE', key, '0', F[c])
  C[c] = nil
  log_open(c, key)
  if #header < W[c] then
    D[c], O[c], T[c], E[c] = 0, nil, now, nil
    for pair = p + 2, p + last[c], 2 do H[pair], G[pair] = 0, 0 end
  else
    local newest, ends, total = unpackBytes('>I6I6I4', header)
    local at = clock_instant(newest, now, N[p + 1])
    D[c], O[c], T[c], E[c], S[c] = total, newest, at, ends, total
    for pair = p + 2, p + last[c], 2 do
      local head, oldest = unpackBytes('>I4I6', header, 17 + 5 * (pair - p - 2))
      H[pair], G[pair] = head, oldest
      if head < S[c] then S[c] = head end
      if head < total and oldest <= at - N[pair + 1] then log_advance(c, pair, head, at) end
    end
    if clock_isAhead(newest, now, N[p + 1]) then
      -- Entries that still count lie less than a window before the newest, so all of them lie ahead of now.
      log_replace(c, key, rep(packBytes('>I6', now), total - S[c]))
    end
  end
  local longest = 0
  for pair = p + 2, p + last[c], 2 do
    local wait = log_waitFor(log_entry, D[c], D[c] - H[pair], T[c], cost, N[pair], N[pair + 1])
    if wait < 0 then return wait end
    if wait > longest then longest = wait end
  end
  return longest
end

take[LOG] = function(c, key, cost)
  local p, at, before = first[c], T[c], D[c]
  log_open(c, key)
  local total = before + cost
  for pair = p + 2, p + last[c], 2 do
    local head = max(H[pair], total - N[pair])
    if head >= before then
      G[pair] = at
    elseif head > H[pair] then
      G[pair] = log_entry(head)
    end
    H[pair] = head
  end
  D[c] = total
  local kept = log_firstKept(c)
  local added = rep(packBytes('>I6', at), cost)
  O[c] = at
  if not E[c] then
    log_rewrite(c, key, 0, added, 0)
  elseif C[c] then
    C[c] = sub(C[c], 6 * kept + 1) .. added
    log_rewrite(c, key, kept, C[c], min(LINGER, N[p + 1]))
  elseif 2 * kept > total then
    local entries = call('GETRANGE', key, W[c] + 6 * kept, -1)
    log_rewrite(c, key, kept, entries .. added, min(LINGER, N[p + 1]))
  else
    local ends = at + N[p + 1]
    if ends > E[c] then
      E[c] = ends + min(LINGER, N[p + 1])
      call('PEXPIRE', key, E[c] - now + slack)
    end
    call('APPEND', key, added)
    call('SETRANGE', key, '0', log_header(c))
  end
  log_open(c, key)
end

giveBack[LOG] = function(c, key, cost, receipt)
  if not E[c] then return end
  local entries = C[c] or call('GETRANGE', key, W[c] + 6 * S[c], -1)
  local after = #entries / 6
  while after > 0 and unpackBytes('>I6', entries, 6 * after - 5) > receipt do after = after - 1 end
  local from = after
  while from > 0 and after - from < cost and unpackBytes('>I6', entries, 6 * from - 5) == receipt do from = from - 1 end
  if from == after then return end
  log_replace(c, key, sub(entries, 1, 6 * from) .. sub(entries, 6 * after + 1))
  log_rewriteReplaced(c, key)
end

heal[LOG] = function(c, key)
  if C[c] then log_rewriteReplaced(c, key) end
end

report[LOG] = function(c, key, cost, admitted)
  if not admitted then log_open(c, key) end
  for pair = first[c] + 2, first[c] + last[c], 2 do
    out[n + 1] = N[pair] - (D[c] - H[pair])
    out[n + 2] = admitted and 0 or log_wait(c, pair, cost)
    out[n + 3] = D[c] == 0 and 0 or max(0, O[c] + N[pair + 1] - now)
    out[n + 4] = admitted and T[c] or H[pair] < D[c] and G[pair] + N[pair + 1] - now or -1
    n = n + 4
  end
end
