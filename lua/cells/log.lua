--- @include "kernels/log"

--- An exact log under one key, shared by all log limits on that key: a header, then a ring of entries.
-- An entry is the low 4 bytes of its instant in ms, or 6 where a window is longer than those can tell; it lies less
-- than the longest window before the newest, which is known in full. Entries are numbered as they come, from 0 when
-- the log is written whole; entry i is in slot i modulo the ring's capacity.
-- Header: the newest entry (6 bytes), when the key expires (6), the ring's capacity (4), the number of the oldest
-- entry (6) and of the next to come (6), how many entries, the newest, are not in the ring yet (1), those (NEAR);
-- and for each limit: the number of the first entry that counts (6), how many entries from there on are known here
-- (1), those (NEAR). So a decision reads and writes the header, and the ring only every few times; what it costs
-- does not grow with the limit.
-- params { most, longestMs, and for each limit: limit, windowMs }
local NEAR, CHUNK = 4, 16

local firstPair, lastPair, most, longestMs
-- By cell: the bytes of an entry, its format, the bytes of the header, the index of its last as text.
local W, F, S, R = {}, {}, {}, {}
-- By limit: the first entry that counts, what is known from there on, how many those are in the header.
local H, K, Z = {}, {}, {}
-- Bytes of the header, and the index of its last as text; bytes of an entry, its format, how many it can tell apart;
-- bytes of the header before the first limit, and what a limit has there: its bytes, its format with one entry.
local base, headerEnd, width, entry, modulus, fixed, stride, limitFormat
-- `newest` and `expires` are nil for a key without a state; `whole`: all entries, where they had to be read; `moved`:
-- the last limit whose part of the header is not as in `header` any more.
local header, newest, expires, capacity, oldest, total, tail, instant, whole, moved
-- What `log_entry` reads: entries from number `chunkFrom` on.
local source, chunk, chunkFrom

prepare[LOG] = function(c)
  local p = first[c]
  if N[p + 1] <= 4294967296 then W[c], F[c] = 4, '>I4' else W[c], F[c] = 6, '>I6' end
  S[c] = 29 + NEAR * W[c] + (last[c] - 1) / 2 * (7 + NEAR * W[c])
  R[c] = tostring(S[c] - 1)
end

open[LOG] = function(c)
  local p = first[c]
  most, longestMs, firstPair, lastPair = N[p], N[p + 1], p + 2, p + last[c]
  base, headerEnd, width, entry = S[c], R[c], W[c], F[c]
  fixed, stride = 29 + NEAR * width, 7 + NEAR * width
  if width == 4 then modulus, limitFormat = 4294967296, '>I6BI4' else modulus, limitFormat = 281474976710656, '>I6BI6' end
end

--- @when several
keep[LOG] = function(c)
  A[c], B[c], C[c], D[c], E[c] = newest, expires, capacity, oldest, total
  G[c], L[c], M[c], O[c], Q[c] = instant, whole, moved, tail, header
end

recall[LOG] = function(c)
  newest, expires, capacity, oldest, total = A[c], B[c], C[c], D[c], E[c]
  instant, whole, moved, tail, header = G[c], L[c], M[c], O[c], Q[c]
end
--- @end

--- The `k`-th of some entries, none of which is newer than the newest.
local function log_instant(entries, k)
  return newest - (newest - unpackBytes(entry, entries, k * width + 1)) % modulus
end

local function log_readRing(key, from, count)
  if count <= 0 then return '' end
  local slot = from % capacity
  local here = min(count, capacity - slot)
  local entries = call('GETRANGE', key, base + slot * width, base + (slot + here) * width - 1)
  if here < count then entries = entries .. call('GETRANGE', key, base, base + (count - here) * width - 1) end
  return entries
end

local function log_writeRing(key, from, entries)
  local slot = from % capacity
  local here = (capacity - slot) * width
  call('SETRANGE', key, base + slot * width, sub(entries, 1, here))
  if #entries > here then call('SETRANGE', key, base, sub(entries, here + 1)) end
end

--- Entries from one number up to another, as one string.
local function log_read(key, from, to)
  local inRing = total - #tail / width
  local entries = log_readRing(key, from, min(to, inRing) - from)
  return entries .. sub(tail, max(0, from - inRing) * width + 1, max(0, to - inRing) * width)
end

--- What the header knows of the entries that count for a limit.
local function log_known(pair)
  local known = K[pair]
  if not known then
    local at = fixed + (pair - firstPair) / 2 * stride + 7
    known = sub(header, at + 1, at + Z[pair] * width)
    K[pair] = known
  end
  return known
end

--- Makes `log_entry` begin with what is known of a limit.
local function log_begin(key, pair)
  source = key
  if whole then chunk, chunkFrom = whole, oldest else chunk, chunkFrom = log_known(pair), H[pair] end
end

--- The entry with number `i`. Reads some at a time, since those around it are asked for next.
local function log_entry(i)
  local beyond = i - chunkFrom - #chunk / width
  if i < chunkFrom or beyond >= CHUNK then chunk, chunkFrom, beyond = '', i, 0 end
  if beyond >= 0 then chunk = chunk .. log_read(source, i - beyond, min(total, i + CHUNK)) end
  return log_instant(chunk, i - chunkFrom)
end

local function log_move(pair, head, known)
  H[pair], K[pair], moved = head, known, max(moved, pair)
end

--- Moves a limit to the first entry that counts at `at`, no more than `limit` from the newest.
local function log_advance(key, pair, from, at)
  log_begin(key, pair)
  local head = total
  if total > oldest and newest > at - N[pair + 1] then
    head = max(log_firstLive(log_entry, from, total, at, N[pair + 1]), total - N[pair])
  end
  -- What was read last begins no later than there.
  local skip = (head - chunkFrom) * width
  log_move(pair, head, sub(chunk, skip + 1, skip + NEAR * width))
end

--- The header, or as much of its start as has changed.
local function log_header()
  local text = packBytes('>I6I6I4I6I6B', newest, expires, capacity, oldest, total, #tail / width) .. tail
  if moved == 0 then return text end
  text = text .. rep('\0', NEAR * width - #tail)
  for pair = firstPair, moved, 2 do
    local known = log_known(pair)
    text = text .. packBytes('>I6B', H[pair], #known / width) .. known .. rep('\0', NEAR * width - #known)
  end
  return text
end

--- Writes the whole log down, with some room for more; its entries are `entries`.
local function log_rewrite(key, entries, linger)
  for pair = firstPair, lastPair, 2 do log_move(pair, H[pair] - oldest, log_known(pair)) end
  oldest, total, capacity, tail = 0, total - oldest, 0, entries
  if total > NEAR then capacity, tail = min(most, total + floor(total / 4) + 2), '' end
  expires = newest + longestMs + linger
  local value = log_header()
  if total > NEAR then value = value .. entries .. rep('\0', (capacity - total) * width) end
  call('SET', key, value, 'PX', expires - now + slack)
end

--- Moves all limits of a log that had to be read to what counts at `at`.
local function log_advanceAll(key, at)
  for pair = firstPair, lastPair, 2 do log_advance(key, pair, oldest, at) end
end

--- Takes `entries` for the whole log, in place of what is stored.
local function log_replace(key, entries)
  whole, oldest, total = entries, 0, #entries / width
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

look[LOG] = function(key, cost)
  header, whole, moved = tryCall('GETRANGE', key, '0', headerEnd), nil, 0
  local unwritten
  if #header < base then
    expires = nil
  else
    newest, expires, capacity, oldest, total, unwritten = unpackBytes('>I6I6I4I6I6B', header)
    local spare = expires - newest - longestMs
    -- Of a log this is what its key lives longer than it must. By chance it is hardly ever that of another value.
    if spare < 0 or spare > LINGER then expires = nil end
  end
  if not expires then
    newest, oldest, total, tail, instant = nil, 0, 0, '', now
    for pair = firstPair, lastPair, 2 do H[pair], K[pair] = 0, '' end
  else
    tail = sub(header, 30, 29 + unwritten * width)
    instant = clock_instant(newest, now, longestMs)
    local at = fixed + 1
    for pair = firstPair, lastPair, 2 do
      local head, known, low = unpackBytes(limitFormat, header, at)
      H[pair], K[pair], Z[pair] = head, nil, known
      at = at + stride
      if known == 0 or newest - (newest - low) % modulus <= instant - N[pair + 1] then
        log_advance(key, pair, head, instant)
      end
    end
    if clock_isAhead(newest, now, longestMs) then
      -- Entries that still count lie less than a window before the newest, so all of them lie ahead of now.
      newest = now
      log_replace(key, rep(packBytes(entry, now % modulus), total - oldest))
    end
  end
  local wait = 0
  for pair = firstPair, lastPair, 2 do
    if cost > N[pair] then return -1 end
    if total - H[pair] + cost > N[pair] then wait = 1 end
  end
  return wait
end

local function log_append(key, added)
  local linger = min(LINGER, longestMs)
  local inRing, unwritten, ends = total - #tail / width, tail .. added, instant + longestMs
  local isNear, isLate, count = #unwritten <= NEAR * width, ends > expires, total - oldest + #added / width
  if (not isNear and count > capacity) or (isLate and 4 * count < capacity) then
    unwritten = log_read(key, oldest, total) .. added
    total, newest = oldest + count, instant
    log_rewrite(key, unwritten, linger)
    return
  end
  if not isNear then
    log_writeRing(key, inRing, unwritten)
    unwritten = ''
  end
  total, newest, tail = oldest + count, instant, unwritten
  if isLate then
    expires = ends + linger
    call('PEXPIRE', key, expires - now + slack)
  end
  call('SETRANGE', key, '0', log_header())
end

take[LOG] = function(key, cost)
  local added = rep(packBytes(entry, instant % modulus), cost)
  local kept = total
  for pair = firstPair, lastPair, 2 do
    local was, known = H[pair], K[pair] and #K[pair] / width or Z[pair]
    local head = max(was, total + cost - N[pair])
    if head > was or known < NEAR then
      local ahead = sub(log_known(pair), (head - was) * width + 1)
      if head + #ahead / width == total then ahead = sub(ahead .. added, 1, NEAR * width) end
      log_move(pair, head, ahead)
    end
    kept = min(kept, head)
  end
  -- What counts for no limit any more makes room.
  tail = sub(tail, max(0, kept - (total - #tail / width)) * width + 1)
  if expires and not whole then
    oldest = kept
    log_append(key, added)
    return
  end
  -- Numbered from 0, as all that was read whole.
  oldest, total, newest = kept, total + cost, instant
  log_rewrite(key, whole and sub(whole, kept * width + 1) .. added or added, 0)
end

giveBack[LOG] = function(key, cost, receipt)
  local entries = whole or log_read(key, oldest, total)
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
-- count (4), and for a refusal one more than the ms until the cost has room (7), and until fewer count (7).
report[LOG] = function(key, cost, outcome)
  local latest = newest and newest + 1 or 0
  n = n + 1
  if outcome == ADMITTED then
    out[n] = packBytes('>BI6I6I4', outcome, instant, latest, total - H[firstPair])
    for pair = firstPair + 2, lastPair, 2 do
      n = n + 1
      out[n] = packBytes('>I4', total - H[pair])
    end
    return
  end
  out[n] = packBytes('>BI6I6', outcome, instant, latest)
  for pair = firstPair, lastPair, 2 do
    log_begin(key, pair)
    local fewer = H[pair] < total and log_entry(H[pair]) + N[pair + 1] - now or -1
    local wait = log_waitFor(log_entry, total, total - H[pair], instant, cost, N[pair], N[pair + 1])
    if wait > 0 then wait = wait + instant - now end
    n = n + 1
    out[n] = packBytes('>I4I7I7', total - H[pair], wait + 1, fewer + 1)
  end
end
