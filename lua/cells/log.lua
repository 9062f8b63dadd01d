--- @include "kernels/log"

--- An exact log under one key, shared by all log limits on that key: a header, then a ring of entries.
-- An entry is the low 4 bytes of its instant in ms, or 6 where a window is longer than those can tell; it lies less
-- than the longest window before the newest, which is known in full.
-- Header: the newest entry (6 bytes), when the key expires (6), how many entries the ring can hold (4), the slot of
-- the first (4), how many entries there are (4), how many of them, the newest, are not in the ring yet (1), those
-- (NEAR); and for each limit: the index of its first entry that counts (4), how many entries from there on are known
-- here (1), those (NEAR). So a decision reads and writes the header, and the ring only every few times; what it
-- costs does not grow with the limit.
-- params { most, longestMs, and for each limit: limit, windowMs }
local NEAR, CHUNK = 4, 16
-- A ring of no more slots than this is not worth shrinking.
local SMALL = 16

local firstPair, lastPair, most, longestMs
-- Bytes of the header, and the index of its last as text; bytes of an entry, its format, how many it can tell apart.
local base, headerEnd, width, entry, modulus
-- `newest` and `expires` are nil for a key without a state; `whole`, all entries where they had to be read.
local newest, expires, capacity, origin, total, tail, instant, whole
-- Whether what the header says of the limits has changed.
local isMoved
-- What `log_entry` reads: entries from index `chunkFrom` on.
local source, chunk, chunkFrom

prepare[LOG] = function(c)
  local p = first[c]
  if N[p + 1] < 4294967296 then W[c], F[c] = 4, '>I4' else W[c], F[c] = 6, '>I6' end
  S[c] = 25 + NEAR * W[c] + (last[c] - 1) / 2 * (5 + NEAR * W[c])
  R[c] = tostring(S[c] - 1)
end

open[LOG] = function(c)
  local p = first[c]
  most, longestMs, firstPair, lastPair = N[p], N[p + 1], p + 2, p + last[c]
  base, headerEnd, width, entry = S[c], R[c], W[c], F[c]
  modulus = width == 4 and 4294967296 or 281474976710656
end

keep[LOG] = function(c)
  A[c], B[c], C[c], D[c] = newest, expires, capacity, origin
  E[c], G[c], L[c], M[c], O[c] = total, instant, whole, isMoved, tail
end

recall[LOG] = function(c)
  newest, expires, capacity, origin = A[c], B[c], C[c], D[c]
  total, instant, whole, isMoved, tail = E[c], G[c], L[c], M[c], O[c]
end

--- The `k`-th of some entries, none of which is newer than the newest.
local function log_instant(entries, k)
  return newest - (newest - unpackBytes(entry, entries, k * width + 1)) % modulus
end

local function log_readRing(key, from, count)
  if count <= 0 then return '' end
  local slot = (origin + from) % capacity
  local here = min(count, capacity - slot)
  local entries = call('GETRANGE', key, base + slot * width, base + (slot + here) * width - 1)
  if here < count then entries = entries .. call('GETRANGE', key, base, base + (count - here) * width - 1) end
  return entries
end

--- Entries from one index up to another, as one string.
local function log_read(key, from, to)
  local inRing = total - #tail / width
  local entries = log_readRing(key, from, min(to, inRing) - from)
  if to <= inRing then return entries end
  return entries .. sub(tail, max(0, from - inRing) * width + 1, (to - inRing) * width)
end

local function log_writeRing(key, from, entries)
  local slot = (origin + from) % capacity
  local here = (capacity - slot) * width
  call('SETRANGE', key, base + slot * width, sub(entries, 1, here))
  if #entries > here then call('SETRANGE', key, base, sub(entries, here + 1)) end
end

--- What is known of the entries that count for a limit.
local function log_begin(key, pair)
  source = key
  if whole then chunk, chunkFrom = whole, 0 else chunk, chunkFrom = K[pair], H[pair] end
end

--- The `i`-th entry, from 0. Reads some at a time, since those after it are asked for next.
local function log_entry(i)
  local k = i - chunkFrom
  if k < 0 or k * width >= #chunk then
    chunk, chunkFrom, k = log_read(source, i, min(total, i + CHUNK)), i, 0
  end
  return log_instant(chunk, k)
end

--- Moves a limit to the first entry that counts at `at`, no more than `limit` from the newest.
local function log_advance(pair, from, at)
  local head = total
  if total > 0 and newest > at - N[pair + 1] then
    head = max(log_firstLive(log_entry, from, total, at, N[pair + 1]), total - N[pair])
  end
  local skip = (head - chunkFrom) * width
  H[pair], K[pair] = head, skip < 0 and '' or sub(chunk, skip + 1, skip + NEAR * width)
  isMoved = true
end

local function log_wait(key, pair, cost)
  log_begin(key, pair)
  return log_waitFor(log_entry, total, total - H[pair], instant, cost, N[pair], N[pair + 1])
end

--- The header, or as much of its start as has changed.
local function log_header()
  local header = packBytes('>I6I6I4I4I4B', newest, expires, capacity, origin, total, #tail / width) .. tail
  if not isMoved then return header end
  header = header .. rep('\0', NEAR * width - #tail)
  for pair = firstPair, lastPair, 2 do
    local known = K[pair]
    header = header .. packBytes('>I4B', H[pair], #known / width) .. known .. rep('\0', NEAR * width - #known)
  end
  return header
end

--- Writes the whole log down, with some room for more; its entries are `entries`.
local function log_rewrite(key, entries, linger)
  origin, capacity, tail, isMoved = 0, 0, entries, true
  if total > NEAR then capacity, tail = min(most, total + floor(total / 4) + 2), '' end
  expires = newest + longestMs + linger
  local value = log_header()
  if total > NEAR then value = value .. entries .. rep('\0', (capacity - total) * width) end
  call('SET', key, value, 'PX', expires - now + slack)
end

--- Moves all limits of a log that had to be read to what counts at `at`.
local function log_advanceAll(key, at)
  for pair = firstPair, lastPair, 2 do
    log_begin(key, pair)
    log_advance(pair, 0, at)
  end
end

--- Takes `entries` for the whole log, in place of what is stored.
local function log_replace(key, entries)
  whole, total = entries, #entries / width
  newest = total > 0 and log_instant(entries, total - 1) or nil
  log_advanceAll(key, instant)
end

--- Writes down what `log_replace` took: all that counted when its newest entry came, should the clock step back.
local function log_rewriteReplaced(key)
  -- With its newest entry gone, all that is left may have lapsed long since: there is no life to give such a key.
  if total == 0 or newest + longestMs + slack <= now then
    call('DEL', key)
    return
  end
  log_advanceAll(key, newest)
  log_rewrite(key, whole, 0)
  log_advanceAll(key, instant)
end

local function log_firstKept()
  local kept = total
  for pair = firstPair, lastPair, 2 do kept = min(kept, H[pair]) end
  return kept
end

local function log_fresh()
  newest, expires, total, tail, instant = nil, nil, 0, '', now
  for pair = firstPair, lastPair, 2 do H[pair], K[pair] = 0, '' end
end

look[LOG] = function(key, cost)
  local header = tryCall('GETRANGE', key, '0', headerEnd)
  whole, isMoved = nil, false
  if #header < base then
    log_fresh()
  else
    local unwritten
    newest, expires, capacity, origin, total, unwritten = unpackBytes('>I6I6I4I4I4B', header)
    tail = sub(header, 26, 25 + unwritten * width)
    instant = clock_instant(newest, now, longestMs)
    local at = 26 + NEAR * width
    for pair = firstPair, lastPair, 2 do
      local head, known = unpackBytes('>I4B', header, at)
      H[pair], K[pair] = head, sub(header, at + 5, at + 4 + known * width)
      at = at + 5 + NEAR * width
      if head < total then
        log_begin(key, pair)
        if log_entry(head) <= instant - N[pair + 1] then log_advance(pair, head, instant) end
      end
    end
    if clock_isAhead(newest, now, longestMs) then
      -- Entries that still count lie less than a window before the newest, so all of them lie ahead of now.
      local count = total - log_firstKept()
      newest = now
      log_replace(key, rep(packBytes(entry, now % modulus), count))
    end
  end
  local longest = 0
  for pair = firstPair, lastPair, 2 do
    local wait = log_wait(key, pair, cost)
    if wait < 0 then return wait end
    if wait > longest then longest = wait end
  end
  return longest
end

--- Drops entries from the start, which count for no limit any more.
local function log_drop(count)
  local beyondRing = count - (total - #tail / width)
  if whole then
    whole = sub(whole, count * width + 1)
  elseif beyondRing >= 0 then
    tail = sub(tail, beyondRing * width + 1)
  else
    origin = (origin + count) % capacity
  end
  total, isMoved = total - count, true
  for pair = firstPair, lastPair, 2 do H[pair] = H[pair] - count end
end

local function log_append(key, added, linger)
  local inRing, unwritten, ends = total - #tail / width, tail .. added, instant + longestMs
  local isNear, isLate = #unwritten <= NEAR * width, ends > expires
  local room = capacity - total - #added / width
  if (not isNear and room < 0) or (isLate and capacity > SMALL and 4 * total < capacity) then
    unwritten = log_read(key, 0, total) .. added
    total, newest = #unwritten / width, instant
    log_rewrite(key, unwritten, linger)
    return
  end
  if not isNear then
    log_writeRing(key, inRing, unwritten)
    unwritten = ''
  end
  total, newest, tail = total + #added / width, instant, unwritten
  if isLate then
    expires = ends + linger
    call('PEXPIRE', key, expires - now + slack)
  end
  call('SETRANGE', key, '0', log_header())
end

take[LOG] = function(key, cost)
  local added = packBytes(entry, instant % modulus)
  if cost > 1 then added = rep(added, cost) end
  for pair = firstPair, lastPair, 2 do
    local was, known = H[pair], K[pair]
    local head = max(was, total + cost - N[pair])
    if head > was then
      known = sub(known, (head - was) * width + 1)
      isMoved = true
    end
    if #known < NEAR * width and head + #known / width >= total then
      known = sub(known .. sub(added, 1, (total + cost - max(head, total)) * width), 1, NEAR * width)
      isMoved = true
    end
    H[pair], K[pair] = head, known
  end
  local kept, linger = log_firstKept(), min(LINGER, longestMs)
  if kept > 0 then log_drop(kept) end
  if expires and not whole then
    log_append(key, added, linger)
    return
  end
  if whole then whole = whole .. added end
  total, newest = total + cost, instant
  log_rewrite(key, whole or added, expires and linger or 0)
end

giveBack[LOG] = function(key, cost, receipt)
  if not expires or total == 0 then return end
  local entries = whole or log_read(key, log_firstKept(), total)
  local after = #entries / width
  while after > 0 and log_instant(entries, after - 1) > receipt do after = after - 1 end
  local from = after
  while from > 0 and after - from < cost and log_instant(entries, from - 1) == receipt do from = from - 1 end
  if from == after then return end
  log_replace(key, sub(entries, 1, from * width) .. sub(entries, after * width + 1))
  log_rewriteReplaced(key)
end

heal[LOG] = function(key)
  if whole then log_rewriteReplaced(key) end
end

--- The decision's instant (6 bytes), one more than the newest entry, or 0 (6); for each limit how many entries
-- count (4), and for a refusal one more than the ms until the cost has room (7).
report[LOG] = function(key, cost, outcome)
  local last = newest and newest + 1 or 0
  n = n + 1
  if outcome == ADMITTED then
    out[n] = packBytes('>BI6I6I4', outcome, instant, last, total - H[firstPair])
    for pair = firstPair + 2, lastPair, 2 do
      n = n + 1
      out[n] = packBytes('>I4', total - H[pair])
    end
    return
  end
  out[n] = packBytes('>BI6I6', outcome, instant, last)
  for pair = firstPair, lastPair, 2 do
    local wait = log_wait(key, pair, cost)
    if wait > 0 then wait = wait + instant - now end
    n = n + 1
    out[n] = packBytes('>I4I7', total - H[pair], wait + 1)
  end
end
