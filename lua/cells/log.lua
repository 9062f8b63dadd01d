--- @kind 2 params=4 together
--- @script decide-log own=1 limitsAt=0 limits=1
--- @script decide-logs shared own=1 limitsAt=0
--- @script one-log own=1 params=1 limitsAt=0 limits=1
--- @script one-logs shared own=1 params=1 limitsAt=0
--- @calls GETRANGE 0 0
--- @calls PEXPIRE 1

--- @kernel
--- The exact log: one instant per admitted unit, oldest first. Pure.
-- state: `entry(i)`, the instant of the i-th entry from 0, and `total`, their number. An entry exactly one window old
-- does not count.

--- The index of the first entry that counts at `at`, or `total` if none does. Gallops from `from`, before which nothing
-- counts, since few entries lapse between two decisions; then bisects (step 0).
local function log_firstLive(entry, from, total, at, windowMs)
  local low, high, step = from, total, 1
  while low < high do
    local probe = low + step - 1
    if step == 0 or probe >= high then probe, step = floor((low + high) / 2), 0 end
    if entry(probe) > at - windowMs then high, step = probe, 0 else low, step = probe + 1, step * 2 end
  end
  return low
end

--- Milliseconds from `at` until `cost` units have room, `live` entries counting: 0 now, -1 never.
local function log_waitFor(entry, total, live, at, cost, limit, windowMs)
  if cost > limit then return -1 end
  -- A cost of 0 has room even if the entries exceed the limit.
  if live + cost <= limit or cost == 0 then return 0 end
  -- With `cost` more units, the first entry beyond the limit is this far from the newest.
  return entry(total - (limit - cost + 1)) + windowMs - at
end

--- @state
--- An exact log under one key, shared by all log limits on that key: a header, then a ring of entries. An entry is the
-- low 4 bytes of its instant in ms, or 6 bytes if a window is longer than 4 bytes can express. It is less than the
-- longest window before the newest entry, which is stored in full. Entries are numbered in order, from 0 when the log
-- is rewritten; entry i is in slot i modulo the ring's capacity.
-- Header: the newest entry (6 bytes), when the key expires (6), the ring's capacity (4), the number of the next entry
-- (6), how many of the newest entries are not in the ring yet (1), those entries (NEAR); and for each limit: the
-- number of the first entry that counts (6), how many entries from there on are in the header (1), those entries
-- (NEAR). The oldest entry is the first that counts for any limit. A decision reads and writes the header, and the
-- ring only every few times, so its cost does not grow with the limit.
-- params { most, longestMs, and for each limit: limit, windowMs }
local NEAR, CHUNK = 4, 16

-- The cell; the start of its params in ARGV; its number of limits, and their offset in the tables by limit. Then the
-- largest limit and the longest window.
local own, params, limits, limitsAt, most, longestMs
-- Extra life of the key in ms, so that most later charges need not change its expiry: for a new key, and for a key in
-- use.
local firstLinger, linger
-- By cell: the bytes of an entry, its format, the bytes of the header, the index of the header's last byte as text.
local widthOf, entryOf, baseOf, headerEndOf = {}, {}, {}, {}
-- By cell: the bytes of a log with one entry at the present instant, which new clients share, and its life as text.
local newLogOf, newLifeOf = {}, {}
-- By limit: the first entry that counts, the entries in the header from there on, and their number.
local headOf, knownOf, knownCountOf = {}, {}, {}
-- Bytes of the header, and the index of its last byte as text; bytes of an entry and of NEAR entries, the format of an
-- entry, and its modulus; bytes of the header before the first limit; bytes of a limit there, and its format with one
-- entry.
local base, headerEnd, width, near, entry, modulus, fixed, stride, limitFormat
-- `newest` and `expires` are nil for a key without a state; `whole`: all entries, if they had to be read; `moved`: the
-- last limit whose part of the header has changed since `header` was read.
local header, newest, expires, capacity, oldest, total, tail, instant, whole, moved
-- The entries that `log_entry` reads, from number `chunkFrom` on.
local source, chunk, chunkFrom
-- An instant as an entry. Decisions of one batch usually share it.
local stampedAt, stamp = nil, ''

prepare[LOG] = function(c)
  local p = first[c]
  if ARGV[p + 1] <= 4294967296 then widthOf[c], entryOf[c] = 4, '>I4' else widthOf[c], entryOf[c] = 6, '>I6' end
  baseOf[c] = 23 + NEAR * widthOf[c] + (last[c] - p - 1) / 2 * (7 + NEAR * widthOf[c])
  headerEndOf[c] = format('%d', baseOf[c] - 1)
  newLogOf[c] = nil
end

open[LOG] = function(c)
  own = c
  params, limits, limitsAt = first[c], (last[c] - first[c] - 1) / 2, first[c]
  most, longestMs = ARGV[params], ARGV[params + 1]
  firstLinger = floor(longestMs / 10)
  linger = max(firstLinger, min(LINGER, longestMs))
  base, headerEnd, width, entry = baseOf[c], headerEndOf[c], widthOf[c], entryOf[c]
  near = NEAR * width
  fixed, stride = 23 + near, 7 + near
  if width == 4 then modulus, limitFormat = 4294967296, '>I6BI4' else modulus, limitFormat = 281474976710656, '>I6BI6' end
end

local function log_limit(l)
  return ARGV[params + 2 * l]
end

local function log_window(l)
  return ARGV[params + 2 * l + 1]
end

--- @when several
keep[LOG] = function(c)
  kept1[c], kept2[c], kept3[c], kept4[c], kept5[c] = newest, expires, capacity, oldest, total
  kept6[c], kept7[c], kept8[c], kept9[c], kept10[c] = instant, whole, moved, tail, header
end

recall[LOG] = function(c)
  newest, expires, capacity, oldest, total = kept1[c], kept2[c], kept3[c], kept4[c], kept5[c]
  instant, whole, moved, tail, header = kept6[c], kept7[c], kept8[c], kept9[c], kept10[c]
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

--- The entries in the header that count for a limit.
local function log_known(l)
  local known = knownOf[limitsAt + l]
  if not known then
    local at = fixed + (l - 1) * stride + 7
    known = sub(header, at + 1, at + knownCountOf[limitsAt + l] * width)
    knownOf[limitsAt + l] = known
  end
  return known
end

--- Makes `log_entry` begin with a limit's entries in the header.
local function log_begin(key, l)
  source = key
  if whole then chunk, chunkFrom = whole, oldest else chunk, chunkFrom = log_known(l), headOf[limitsAt + l] end
end

--- The entry with number `i`. Reads several at a time, since its neighbours are needed next.
local function log_entry(i)
  local beyond = i - chunkFrom - #chunk / width
  if i < chunkFrom or beyond >= CHUNK then chunk, chunkFrom, beyond = '', i, 0 end
  if beyond >= 0 then chunk = chunk .. log_read(source, i - beyond, min(total, i + CHUNK)) end
  return log_instant(chunk, i - chunkFrom)
end

local function log_move(l, head, known)
  headOf[limitsAt + l], knownOf[limitsAt + l], moved = head, known, max(moved, l)
end

--- Moves a limit to the first entry in its window at `at`. A larger limit of the same state may have admitted more than this one.
local function log_advance(key, l, from, at)
  log_begin(key, l)
  local head = total
  if total > oldest and newest > at - log_window(l) then
    head = log_firstLive(log_entry, from, total, at, log_window(l))
  end
  -- The last chunk begins no later than there.
  local skip = (head - chunkFrom) * width
  log_move(l, head, sub(chunk, skip + 1, skip + near))
end

--- The header, or as much of its start as has changed.
local function log_header()
  if moved == 0 then return packBytes('>I6I6I4I6Bc0', newest, expires, capacity, total, #tail / width, tail) end
  local known = log_known(1)
  local text = packBytes(
    '>I6I6I4I6Bc0c0I6Bc0c0', newest, expires, capacity, total, #tail / width, tail, rep('\0', near - #tail),
    headOf[limitsAt + 1], #known / width, known, rep('\0', near - #known)
  )
  for l = 2, limits do
    if l <= moved then
      known = log_known(l)
      text = packBytes('>c0I6Bc0c0', text, headOf[limitsAt + l], #known / width, known, rep('\0', near - #known))
    end
  end
  return text
end

--- Rewrites the whole log with `entries`, with room for a quarter more, in steps of the usual write to the ring. The
-- key gets `longer` ms of extra life; without `longer`, its expiry is unchanged.
local function log_rewrite(key, entries, longer)
  for l = 1, limits do
    local known = log_known(l)
    log_move(l, headOf[limitsAt + l] - oldest, known)
  end
  oldest, total, capacity, tail = 0, total - oldest, 0, entries
  if total > NEAR then
    capacity, tail = max(total, min(most, total + (NEAR + 1) * ceil(total / (4 * NEAR + 4)))), ''
  end
  if longer then expires = newest + longestMs + longer end
  local value = log_header()
  if total > NEAR then value = packBytes('c0c0c0', value, entries, rep('\0', (capacity - total) * width)) end
  if longer then call('SET', key, value, 'PX', expires - now + slack) else call('SET', key, value, 'KEEPTTL') end
end

--- Moves all limits of a log that was read whole to the entries that count at `at`.
local function log_advanceAll(key, at)
  for l = 1, limits do log_advance(key, l, oldest, at) end
end

--- Replaces the stored log by `entries`.
local function log_replace(key, entries)
  whole, oldest, total = entries, 0, #entries / width
  newest = total > 0 and log_instant(entries, total - 1) or nil
  log_advanceAll(key, instant)
end

--- Writes the entries of `log_replace`: all that counted at the newest entry's instant, in case the clock steps back.
local function log_rewriteReplaced(key)
  -- Without the newest entry, all others may have lapsed long ago. Such a key has no life left.
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
    requireRead(header)
    expires = nil
  else
    newest, expires, capacity, total, unwritten = unpackBytes('>I6I6I4I6B', header)
    local spare = expires - newest - longestMs
    -- For a log, this is its key's extra life. A foreign value hardly ever has such a number by chance.
    if spare < 0 or spare > linger then expires = nil end
  end
  if not expires then
    newest, oldest, total, tail, instant = nil, 0, 0, '', now
    for l = 1, limits do headOf[limitsAt + l], knownOf[limitsAt + l] = 0, '' end
  else
    tail = sub(header, 24, 23 + unwritten * width)
    instant = clock_instant(newest, now, longestMs)
    oldest = total
    local at = fixed + 1
    for l = 1, limits do
      local head, known, low = unpackBytes(limitFormat, header, at)
      headOf[limitsAt + l], knownOf[limitsAt + l], knownCountOf[limitsAt + l] = head, nil, known
      at = at + stride
      oldest = min(oldest, head)
      if known == 0 or newest - (newest - low) % modulus <= instant - log_window(l) then
        log_advance(key, l, head, instant)
      end
    end
    if clock_isAhead(newest, now, longestMs) then
      -- Entries that still count are less than a window before the newest, so all of them are ahead of now.
      newest = now
      log_replace(key, rep(packBytes(entry, now % modulus), total - oldest))
    end
  end
  local wait = 0
  for l = 1, limits do
    if cost > log_limit(l) then wait = -1 end
    if wait == 0 and cost > 0 and total - headOf[limitsAt + l] + cost > log_limit(l) then wait = 1 end
  end
  return wait
end

--- The number of entries that count for a limit; 0 if there is no such limit.
local function log_count(l)
  return total - (headOf[limitsAt + l] or total)
end

--- @when together
room[LOG] = function()
  local units = most
  for l = 1, limits do
    local taken = log_count(l)
    units = min(units, log_limit(l) - taken)
  end
  return units
end
--- @end

local function log_append(key, added, cost)
  tail, total, newest = tail .. added, total + cost, instant
  local ends, count = newest + longestMs, total - oldest
  local isLate = ends > expires
  if (#tail > near and count > capacity) or (isLate and 4 * count < capacity) then
    log_rewrite(key, log_read(key, oldest, total), isLate and linger)
    return
  end
  if #tail > near then
    log_writeRing(key, total - #tail / width, tail)
    tail = ''
  end
  if isLate then
    expires = ends + linger
    call('PEXPIRE', key, expires - now + slack)
  end
  call('SETRANGE', key, '0', log_header())
end

--- Writes a log whose first entry is at the present instant.
local function log_writeFirst(key)
  local fresh = newLogOf[own]
  if not fresh then
    local gap = rep('\0', near - width)
    fresh = packBytes('>I6I6I4I6Bc0c0', now, now + longestMs + firstLinger, 0, 1, 1, stamp, gap)
    for _ = 1, limits do fresh = packBytes('>c0I6Bc0c0', fresh, 0, 1, stamp, gap) end
    newLogOf[own], newLifeOf[own] = fresh, format('%d', longestMs + firstLinger + slack)
  end
  call('SET', key, fresh, 'PX', newLifeOf[own])
  for l = 1, limits do headOf[limitsAt + l], knownOf[limitsAt + l] = 0, stamp end
  oldest, total, newest, tail = 0, 1, now, stamp
end

take[LOG] = function(key, cost)
  if instant ~= stampedAt or #stamp ~= width then stamp, stampedAt = packBytes(entry, instant % modulus), instant end
  if cost == 1 and not expires then
    log_writeFirst(key)
    return
  end
  local added = stamp
  if cost > 1 then added = rep(added, cost) end
  local kept, least = total, 0
  -- A charge that does not fit replaces the oldest entries, never more than it adds: a larger limit of the same state may
  -- have admitted them.
  if total + cost - oldest > most then
    for l = 1, limits do kept = min(kept, headOf[limitsAt + l]) end
    least = min(kept, total - most) + cost
    kept = total
  end
  for l = 1, limits do
    local was, known = headOf[limitsAt + l], knownCountOf[limitsAt + l]
    if knownOf[limitsAt + l] then known = #knownOf[limitsAt + l] / width end
    local head = max(was, least)
    if head > was or known < NEAR then
      local ahead = sub(log_known(l), (head - was) * width + 1)
      if head + #ahead / width == total then ahead = sub(ahead .. added, 1, near) end
      log_move(l, head, ahead)
    end
    kept = min(kept, head)
  end
  -- Entries that count for no limit make room.
  if kept > oldest then
    local lapsed = kept - (total - #tail / width)
    if lapsed > 0 then tail = sub(tail, lapsed * width + 1) end
  end
  if expires and not whole then
    oldest = kept
    log_append(key, added, cost)
    return
  end
  -- Numbered from 0, like every log that was read whole.
  oldest, total, newest = kept, total + cost, instant
  log_rewrite(key, whole and sub(whole, kept * width + 1) .. added or added, firstLinger)
end

refund[LOG] = function(key, cost, receipt)
  local entries = whole or log_read(key, oldest, total)
  local after = #entries / width
  while after > 0 and log_instant(entries, after - 1) > receipt do after = after - 1 end
  local from = after
  while from > 0 and after - from < cost and log_instant(entries, from - 1) == receipt do from = from - 1 end
  if from == after then return end
  log_replace(key, sub(entries, 1, from * width) .. sub(entries, after * width + 1))
  log_rewriteReplaced(key)
end

--- @when debit
debit[LOG] = function(key, cost)
  take[LOG](key, min(cost, most))
end
--- @end

heal[LOG] = function(key)
  if whole then log_rewriteReplaced(key) end
end

--- The decision's instant (6 bytes), one more than the newest entry, or 0 (6); for each limit how many entries
-- count (4), and for a refusal one more than the ms until the cost has room (7), and until fewer count (7).
report[LOG] = function(key, cost, outcome)
  local latest = newest and newest + 1 or 0
  if outcome == ADMITTED then
    say(packBytes('>BI6I6I4', outcome, instant, latest, log_count(1)))
    for l = 2, limits, 3 do
      local counts = packBytes('>I4I4I4', log_count(l), log_count(l + 1), log_count(l + 2))
      if limits < l + 2 then counts = sub(counts, 1, (limits - l + 1) * 4) end
      say(counts)
    end
    return
  end
  say(packBytes('>BI6I6', outcome, instant, latest))
  for l = 1, limits do
    log_begin(key, l)
    local fewer = -1
    -- While more count than the limit admits, one less makes no difference.
    local head = max(headOf[limitsAt + l], total - log_limit(l))
    if head < total then fewer = log_entry(head) + log_window(l) - now end
    local wait = log_waitFor(log_entry, total, total - headOf[limitsAt + l], instant, cost, log_limit(l), log_window(l))
    if wait > 0 then wait = wait + instant - now end
    say(packBytes('>I4I7I7', log_count(l), wait + 1, fewer + 1))
  end
end
