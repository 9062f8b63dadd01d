// Generated from lua/ by `npm run build:lua`. Do not edit: change the Lua and run that again.

/** A script for Redis, and the name EVALSHA knows it by. */
export interface LuaScript {
  readonly name: string
  /** Of exactly `source`, 40 hexadecimal digits. */
  readonly sha1: string
  readonly source: string
}

export const blockScript: LuaScript = {
  name: 'block',
  sha1: '00b0d91e5418bc2a9a7e1a6b359a13e0121a61bf',
  source: `local now, slack = tonumber(ARGV[1]), 0
if now then
slack = 3600000
else
local time = redis.call('TIME')
now = time[1] * 1000 + math.floor(time[2] / 1000)
end
local ends, life = now + tonumber(ARGV[2]), tonumber(ARGV[2]) + slack
redis.call('SET', KEYS[1], string.format('%.0f', ends) .. ' ' .. ARGV[3], 'PX', life)
if KEYS[2] and redis.call('PTTL', KEYS[2]) <= life then redis.call('SET', KEYS[2], '1', 'PX', life) end
return ends
`,
}

export const decideScript: LuaScript = {
  name: 'decide',
  sha1: 'ed6c27b9d6d9b5f993b35226bbd0dba2efa6e01a',
  source: `local ARGV, KEYS = ARGV, KEYS
local tryCall = redis.pcall
local call, floor, ceil, max, min = redis.call, math.floor, math.ceil, math.max, math.min
local packBytes, unpackBytes = struct.pack, struct.unpack
local sub, rep, format, concat = string.sub, string.rep, string.format, table.concat
local CONSUME, PEEK, CHARGE, REFUND, RELEASE = 0, 1, 2, 3, 4
local RESERVING = 8
local REFUSED, ADMITTED, BLOCKED = 0, 1, 2
local BUCKET, LOG, SEGMENTS, COUNTER, CONCURRENCY = 1, 2, 3, 4, 5
local LINGER = 10000
local now, slack = tonumber(ARGV[1]), 0
if now then
slack = 3600000
else
local time = call('TIME')
now = time[1] * 1000 + floor(time[2] / 1000)
end
local out, n = { packBytes('>I6', now) }, 1
local kernel, N, first, last = {}, {}, {}, {}
local prepare, open, look, keep, recall, take, giveBack, renew, heal, report = {}, {}, {}, {}, {}, {}, {}, {}, {}, {}
--@when several
local A, B, C, D, E, G, L, M, O, Q = {}, {}, {}, {}, {}, {}, {}, {}, {}, {}
--@end
local function clock_instant(at, now, horizonMs)
if at > now and at <= now + horizonMs then return at end
return now
end
local function clock_isAhead(at, now, horizonMs)
return at > now + horizonMs
end
--@when bucket
do
local function bucket_drain(debt, since, at, limit, stepMs)
local elapsed
if stepMs == 1 then
elapsed = at - since
else
elapsed = floor(at / stepMs) * stepMs - floor(since / stepMs) * stepMs
end
return max(0, debt - elapsed * limit)
end
local function bucket_waitFor(debt, at, cost, limit, windowMs, capacity, stepMs)
if cost > capacity then return -1 end
local excess = debt + cost * windowMs - capacity * windowMs
if excess <= 0 then return 0 end
local steps = ceil(excess / (limit * stepMs))
return (floor(at / stepMs) + steps) * stepMs - at
end
local function bucket_charge(debt, cost, windowMs, capacity)
return min(capacity * windowMs, debt + cost * windowMs)
end
local function bucket_refund(debt, at, cost, receipt, chargedAt, limit, windowMs, stepMs)
local outstanding = bucket_drain(receipt, min(chargedAt, at), at, limit, stepMs)
return max(0, debt - min(cost * windowMs, outstanding))
end
local limit, windowMs, capacity, stepMs
local debt, instant, since, expires
open[BUCKET] = function(c)
local p = first[c]
limit, windowMs, capacity, stepMs = N[p], N[p + 1], N[p + 2], N[p + 3]
end
--@when several
keep[BUCKET] = function(c)
A[c], B[c], C[c], D[c] = debt, instant, since, expires
end
recall[BUCKET] = function(c)
debt, instant, since, expires = A[c], B[c], C[c], D[c]
end
--@end
local function bucket_wait(cost)
local wait = bucket_waitFor(debt, instant, cost, limit, windowMs, capacity, stepMs)
if wait > 0 then return wait + instant - now end
return wait
end
local function bucket_write(key)
local life = bucket_wait(capacity)
if life <= 0 then
if since then call('DEL', key) end
return
end
local ends = now + life
if since and ends <= expires then
call('SETRANGE', key, '0', packBytes('>I7I6', debt, instant))
return
end
if since then ends = ends + min(LINGER, ceil(capacity * windowMs / limit)) end
call('SET', key, packBytes('>I7I6I6', debt, instant, ends), 'PX', ends - now + slack)
end
look[BUCKET] = function(key, cost)
local stored = tryCall('GET', key)
if stored and #stored == 19 then
debt, since, expires = unpackBytes('>I7I6I6', stored)
instant = clock_instant(since, now, windowMs)
debt = bucket_drain(debt, min(since, instant), instant, limit, stepMs)
else
debt, instant, since, expires = 0, now, nil, nil
end
return bucket_waitFor(debt, instant, cost, limit, windowMs, capacity, stepMs)
end
take[BUCKET] = function(key, cost)
debt = bucket_charge(debt, cost, windowMs, capacity)
bucket_write(key)
end
giveBack[BUCKET] = function(key, cost, receipt, chargedAt)
if not since then return end
debt = bucket_refund(debt, instant, cost, receipt, chargedAt, limit, windowMs, stepMs)
bucket_write(key)
end
heal[BUCKET] = function(key)
if since and clock_isAhead(since, now, windowMs) then bucket_write(key) end
end
report[BUCKET] = function(key, cost, outcome)
n = n + 1
out[n] = packBytes('>BI7I6', outcome, debt, instant)
end
end
--@end
--@when log
do
local function log_firstLive(entry, from, total, at, windowMs)
local low, step = from, 1
while low + step <= total and entry(low + step - 1) <= at - windowMs do
low = low + step
step = step * 2
end
local high = min(low + step, total)
while low < high do
local middle = floor((low + high) / 2)
if entry(middle) > at - windowMs then high = middle else low = middle + 1 end
end
return low
end
local function log_waitFor(entry, total, live, at, cost, limit, windowMs)
if cost > limit then return -1 end
if live + cost <= limit then return 0 end
return entry(total - (limit - cost + 1)) + windowMs - at
end
local NEAR, CHUNK = 4, 16
local firstPair, lastPair, most, longestMs
local W, F, S, R = {}, {}, {}, {}
local H, K, Z = {}, {}, {}
local base, headerEnd, width, entry, modulus, fixed, stride, limitFormat
local header, newest, expires, capacity, oldest, total, tail, instant, whole, moved
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
--@when several
keep[LOG] = function(c)
A[c], B[c], C[c], D[c], E[c] = newest, expires, capacity, oldest, total
G[c], L[c], M[c], O[c], Q[c] = instant, whole, moved, tail, header
end
recall[LOG] = function(c)
newest, expires, capacity, oldest, total = A[c], B[c], C[c], D[c], E[c]
instant, whole, moved, tail, header = G[c], L[c], M[c], O[c], Q[c]
end
--@end
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
local function log_read(key, from, to)
local inRing = total - #tail / width
local entries = log_readRing(key, from, min(to, inRing) - from)
return entries .. sub(tail, max(0, from - inRing) * width + 1, max(0, to - inRing) * width)
end
local function log_known(pair)
local known = K[pair]
if not known then
local at = fixed + (pair - firstPair) / 2 * stride + 7
known = sub(header, at + 1, at + Z[pair] * width)
K[pair] = known
end
return known
end
local function log_begin(key, pair)
source = key
if whole then chunk, chunkFrom = whole, oldest else chunk, chunkFrom = log_known(pair), H[pair] end
end
local function log_entry(i)
local beyond = i - chunkFrom - #chunk / width
if i < chunkFrom or beyond >= CHUNK then chunk, chunkFrom, beyond = '', i, 0 end
if beyond >= 0 then chunk = chunk .. log_read(source, i - beyond, min(total, i + CHUNK)) end
return log_instant(chunk, i - chunkFrom)
end
local function log_move(pair, head, known)
H[pair], K[pair], moved = head, known, max(moved, pair)
end
local function log_advance(key, pair, from, at)
log_begin(key, pair)
local head = total
if total > oldest and newest > at - N[pair + 1] then
head = max(log_firstLive(log_entry, from, total, at, N[pair + 1]), total - N[pair])
end
local skip = (head - chunkFrom) * width
log_move(pair, head, sub(chunk, skip + 1, skip + NEAR * width))
end
local function log_header()
local text = packBytes('>I6I6I4I6I6B', newest, expires, capacity, oldest, total, #tail / width) .. tail
if moved == 0 then return text end
text = text .. rep('\\0', NEAR * width - #tail)
for pair = firstPair, moved, 2 do
local known = log_known(pair)
text = text .. packBytes('>I6B', H[pair], #known / width) .. known .. rep('\\0', NEAR * width - #known)
end
return text
end
local function log_rewrite(key, entries, linger)
for pair = firstPair, lastPair, 2 do log_move(pair, H[pair] - oldest, log_known(pair)) end
oldest, total, capacity, tail = 0, total - oldest, 0, entries
if total > NEAR then capacity, tail = min(most, total + floor(total / 4) + 2), '' end
expires = newest + longestMs + linger
local value = log_header()
if total > NEAR then value = value .. entries .. rep('\\0', (capacity - total) * width) end
call('SET', key, value, 'PX', expires - now + slack)
end
local function log_advanceAll(key, at)
for pair = firstPair, lastPair, 2 do log_advance(key, pair, oldest, at) end
end
local function log_replace(key, entries)
whole, oldest, total = entries, 0, #entries / width
newest = total > 0 and log_instant(entries, total - 1) or nil
log_advanceAll(key, instant)
end
local function log_rewriteReplaced(key)
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
tail = sub(tail, max(0, kept - (total - #tail / width)) * width + 1)
if expires and not whole then
oldest = kept
log_append(key, added)
return
end
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
end
--@end
--@when segments
do
local STRICT, DROPPED, WEIGHTED_DOWN = 0, 1, 2
local function window_nth(counts, k, width, format)
return (unpackBytes(format, counts, k * width + 1))
end
local function window_leaving(counts, by, segments, width, format)
local units = 0
for k = max(0, segments - by), segments - 1 do units = units + window_nth(counts, k, width, format) end
return units
end
local function window_edgeUnits(count, offset, segmentMs, edge)
if edge == STRICT then return count end
if edge == DROPPED then return 0 end
local share = (count * (segmentMs - offset)) / segmentMs
if edge == WEIGHTED_DOWN then return floor(share) end
return ceil(share)
end
local function window_offsetFor(count, room, segmentMs, edge)
if edge == DROPPED or count <= room then return 0 end
if edge == STRICT then return segmentMs end
if edge == WEIGHTED_DOWN then return floor((segmentMs * (count - room - 1)) / count) + 1 end
return ceil((segmentMs * (count - room)) / count)
end
local function window_waitFor(counts, total, offset, cost, limit, segments, segmentMs, edge, width, format)
if cost > limit then return -1 end
local inside = total
for by = 0, segments do
if by > 0 then inside = inside - window_nth(counts, segments - by, width, format) end
if inside + cost <= limit then
local count = window_nth(counts, segments - by, width, format)
local from = window_offsetFor(count, limit - cost - inside, segmentMs, edge)
if from < segmentMs then return max(0, by * segmentMs + from - offset) end
end
end
return (segments + 1) * segmentMs - offset
end
local function window_resetAfter(counts, offset, segments, segmentMs, edge, width, format)
for k = 0, segments do
local count = window_nth(counts, k, width, format)
if count > 0 then
return max(0, (segments - k) * segmentMs + window_offsetFor(count, 0, segmentMs, edge) - offset)
end
end
return 0
end
local limit, windowMs, segments, edge, segmentMs, width, counter
local W, F = {}, {}
local counts, total, segment, offset, instant, newest
prepare[SEGMENTS] = function(c)
local bytes, top = 1, 256
while top <= N[first[c]] do
bytes = bytes + 1
top = top * 256
end
W[c], F[c] = bytes, '>I' .. bytes
end
open[SEGMENTS] = function(c)
local p = first[c]
limit, windowMs, segments, edge = N[p], N[p + 1], N[p + 2], N[p + 3]
segmentMs, width, counter = windowMs / segments, W[c], F[c]
end
--@when several
keep[SEGMENTS] = function(c)
A[c], B[c], C[c], D[c], E[c], G[c] = counts, total, segment, offset, instant, newest
end
recall[SEGMENTS] = function(c)
counts, total, segment, offset, instant, newest = A[c], B[c], C[c], D[c], E[c], G[c]
end
--@end
local function segments_wait(cost)
local wait = window_waitFor(counts, total, offset, cost, limit, segments, segmentMs, edge, width, counter)
if wait > 0 then return wait + instant - now end
return wait
end
local function segments_reset()
local reset = window_resetAfter(counts, offset, segments, segmentMs, edge, width, counter)
if reset > 0 then return reset + instant - now end
return 0
end
local function segments_write(key)
if segments_reset() == 0 then
if newest then call('DEL', key) end
return
end
local life = windowMs + segmentMs - offset + instant - now
call('SET', key, packBytes('>I6', segment) .. packBytes(counter, total) .. counts, 'PX', life + slack)
end
local function segments_add(k, units)
local count = packBytes(counter, window_nth(counts, k, width, counter) + units)
counts = sub(counts, 1, k * width) .. count .. sub(counts, (k + 1) * width + 1)
if k < segments then total = total + units end
end
local function segments_room()
return max(0, limit - total - window_edgeUnits(window_nth(counts, segments, width, counter), offset, segmentMs, edge))
end
local function segments_bringBack()
if edge < WEIGHTED_DOWN then return end
local units = window_nth(counts, segments, width, counter)
counts = sub(counts, 1, segments * width) .. rep('\\0', width)
segments_add(segments - 1, min(units, limit - total))
end
look[SEGMENTS] = function(key, cost)
local stored = tryCall('GET', key)
if stored and #stored ~= 6 + (segments + 2) * width then stored = false end
newest, instant = nil, now
if stored then
newest = unpackBytes('>I6', stored)
instant = clock_instant(newest * segmentMs, now, windowMs)
end
segment = floor(instant / segmentMs)
offset = instant - segment * segmentMs
local by = stored and max(0, segment - newest) or segments + 1
if by > segments then
total, counts = 0, rep('\\0', (segments + 1) * width)
else
total, counts = unpackBytes(counter, stored, 7), sub(stored, 7 + width)
if by > 0 then
total = total - window_leaving(counts, by, segments, width, counter)
counts = rep('\\0', by * width) .. sub(counts, 1, (segments + 1 - by) * width)
end
end
if newest and clock_isAhead(newest * segmentMs, now, windowMs) then segments_bringBack() end
return segments_wait(cost)
end
take[SEGMENTS] = function(key, cost)
segments_add(0, min(cost, segments_room()))
if newest == segment then
call('SETRANGE', key, '6', packBytes(counter, total) .. sub(counts, 1, width))
else
segments_write(key)
end
end
giveBack[SEGMENTS] = function(key, cost, receipt)
local k = segment - receipt
if not newest or k < 0 or k > segments then return end
segments_add(k, -min(cost, window_nth(counts, k, width, counter)))
segments_write(key)
end
heal[SEGMENTS] = function(key)
if newest and clock_isAhead(newest * segmentMs, now, windowMs) then segments_write(key) end
end
report[SEGMENTS] = function(key, cost, outcome)
local room = segments_room()
n = n + 1
out[n] = packBytes('>BI7I7I6', outcome, room, segments_reset(), segment)
if outcome == REFUSED then
n = n + 1
out[n] = packBytes('>I7I7', segments_wait(cost) + 1, segments_wait(room + 1) + 1)
end
end
end
--@end
--@when counter
do
local function counter_startOf(at, windowMs, byClock)
if byClock then return floor(at / windowMs) * windowMs end
return at
end
local function counter_waitFor(count, endsIn, cost, limit)
if cost > limit then return -1 end
if count + cost <= limit then return 0 end
return endsIn
end
local limit, windowMs, byClock
local count, start, since
open[COUNTER] = function(c)
local p = first[c]
limit, windowMs, byClock = N[p], N[p + 1], N[p + 3] == 1
end
--@when several
keep[COUNTER] = function(c)
A[c], B[c], C[c] = count, start, since
end
recall[COUNTER] = function(c)
count, start, since = A[c], B[c], C[c]
end
--@end
local function counter_write(key)
if count == 0 then
call('DEL', key)
elseif since == start then
call('SETRANGE', key, '0', packBytes('>I7', count))
else
call('SET', key, packBytes('>I7I6', count, start), 'PX', start + windowMs - now + slack)
end
end
look[COUNTER] = function(key, cost)
local stored = tryCall('GET', key)
local instant, isOver = now, true
if stored and #stored == 13 then
count, since = unpackBytes('>I7I6', stored)
instant = clock_instant(since, now, windowMs)
isOver = instant >= since + windowMs
else
since = nil
end
if isOver then count = 0 end
if not isOver and since <= instant then start = since else start = counter_startOf(instant, windowMs, byClock) end
return counter_waitFor(count, start + windowMs - now, cost, limit)
end
take[COUNTER] = function(key, cost)
count = min(limit, count + cost)
counter_write(key)
end
giveBack[COUNTER] = function(key, cost, receipt)
if not since or start ~= receipt then return end
count = max(0, count - cost)
counter_write(key)
end
heal[COUNTER] = function(key)
if since and clock_isAhead(since, now, windowMs) then counter_write(key) end
end
report[COUNTER] = function(key, cost, outcome)
n = n + 1
out[n] = packBytes('>BI7I6', outcome, count, start)
end
end
--@end
--@when concurrency
do
local limit, ttlMs
local held, isForeign
local nowText = format('%.0f', now)
open[CONCURRENCY] = function(c)
local p = first[c]
limit, ttlMs = N[p], N[p + 1]
end
--@when several
keep[CONCURRENCY] = function(c)
A[c], B[c] = held, isForeign
end
recall[CONCURRENCY] = function(c)
held, isForeign = A[c], B[c]
end
--@end
local function concurrency_endAt(key, rank)
local lease = call('ZRANGE', key, rank, rank, 'WITHSCORES')
return lease[2] and min(tonumber(lease[2]), now + ttlMs) or now
end
local function concurrency_waitFor(key, cost)
if cost > limit then return -1 end
local missing = held + cost - limit
if cost == 0 or missing <= 0 then return 0 end
return concurrency_endAt(key, missing - 1 - held) - now
end
local function concurrency_count(key)
local count = tryCall('ZCOUNT', key, '(' .. nowText, '+inf')
isForeign = type(count) == 'table'
held = isForeign and 0 or count
end
look[CONCURRENCY] = function(key, cost)
concurrency_count(key)
return concurrency_waitFor(key, cost)
end
take[CONCURRENCY] = function(key, cost, lease)
if isForeign then call('DEL', key) end
for place = 0, cost - 1 do call('ZADD', key, now + ttlMs, lease .. '.' .. place) end
held = held + cost
if call('ZCARD', key) > held then call('ZREMRANGEBYSCORE', key, '-inf', nowText) end
call('PEXPIRE', key, ttlMs + slack)
end
giveBack[CONCURRENCY] = function(key, cost, receipt, chargedAt, lease)
if isForeign then return end
for place = 0, cost - 1 do call('ZREM', key, lease .. '.' .. place) end
concurrency_count(key)
end
renew[CONCURRENCY] = function(key, cost, lease)
if isForeign then return end
local latest = now + ttlMs
for place = 0, cost - 1 do
local name = lease .. '.' .. place
local ends = call('ZSCORE', key, name)
if ends and tonumber(ends) > now then
call('ZADD', key, latest, name)
call('PEXPIRE', key, latest - now + slack)
end
end
end
heal[CONCURRENCY] = function(key)
if isForeign then return end
local latest = now + ttlMs
for _, lease in ipairs(call('ZRANGEBYSCORE', key, '(' .. format('%.0f', latest), '+inf')) do
call('ZADD', key, latest, lease)
end
end
report[CONCURRENCY] = function(key, cost, outcome)
local ends = held == 0 and now or concurrency_endAt(key, -1)
n = n + 1
out[n] = packBytes('>BI7I7', outcome, limit - held, ends - now)
if outcome == REFUSED then
local wait = concurrency_waitFor(key, cost)
local more = wait == 0 and concurrency_waitFor(key, limit - held + 1) or -1
n = n + 1
out[n] = packBytes('>I7I7', wait + 1, more + 1)
end
end
end
--@end
local blockKeys = tonumber(ARGV[2])
if blockKeys < 0 then
if tryCall('GET', KEYS[1]) then return '' end
end
local anyBlocked = blockKeys > 0 and call('EXISTS', unpack(KEYS, 1, blockKeys)) > 0
local a, block, cell = 4, 1, max(blockKeys, -blockKeys)
for _ = 1, tonumber(ARGV[3]) do
local identities, cells = tonumber(ARGV[a]), tonumber(ARGV[a + 1])
a = a + 2
local at, takesPlaces = 1, false
for c = 1, cells do
local k, params = tonumber(ARGV[a]), tonumber(ARGV[a + 1])
kernel[c], first[c], last[c] = k, at, params - 1
for i = 0, params - 1 do N[at + i] = tonumber(ARGV[a + 2 + i]) end
at = at + params
a = a + 2 + params
if prepare[k] then prepare[k](c) end
if cells == 1 then open[k](c) end
if k == CONCURRENCY then takesPlaces = true end
end
local runs = tonumber(ARGV[a])
a = a + 1
for _ = 1, runs do
local op, decisions = tonumber(ARGV[a]), tonumber(ARGV[a + 1])
a = a + 1
local costs = {}
for c = 1, cells do costs[c] = tonumber(ARGV[a + c]) end
a = a + cells + 1
local needs = costs
if op >= RESERVING then
op, needs = op - RESERVING, {}
for c = 1, cells do needs[c] = tonumber(ARGV[a + c - 1]) end
a = a + cells
end
for _ = 1, decisions do
local lease
if takesPlaces then
lease = ARGV[a]
a = a + 1
end
local ends, reason
if anyBlocked and op <= CHARGE then
for b = block, block + identities - 1 do
local value = tryCall('GET', KEYS[b])
if type(value) == 'string' and not ends then ends, reason = string.match(value, '^(%d+) (.*)$') end
ends = ends and tonumber(ends) > now and ends
end
end
if op >= REFUND then
local chargedAt = 0
if op == REFUND then
chargedAt = tonumber(ARGV[a])
a = a + 1
end
for c = 1, cells do
local key, k = KEYS[cell + c], kernel[c]
open[k](c)
look[k](key, 0)
if op == REFUND then
giveBack[k](key, costs[c], tonumber(ARGV[a]), chargedAt, lease)
a = a + 1
elseif k == CONCURRENCY then
if op == RELEASE then
giveBack[k](key, costs[c], 0, 0, lease)
else
renew[k](key, costs[c], lease)
end
end
report[k](key, 0, ADMITTED)
end
end
if ends then
n = n + 1
out[n] = packBytes('>BI7I2', BLOCKED, tonumber(ends) - now, #reason) .. reason
elseif op < REFUND then
local allowed, possible = true, true
for c = 1, cells do
local k = kernel[c]
--@when several
if cells > 1 then open[k](c) end
--@end
local wait = look[k](KEYS[cell + c], needs[c])
if wait ~= 0 then allowed = false end
if wait < 0 then possible = false end
--@when several
if cells > 1 then keep[k](c) end
--@end
end
local charged = op ~= PEEK and (allowed or (op == CHARGE and possible))
for c = 1, cells do
local key, k, cost = KEYS[cell + c], kernel[c], costs[c]
--@when several
if cells > 1 then
open[k](c)
recall[k](c)
end
--@end
if charged then
if cost > 0 and (allowed or k ~= CONCURRENCY) then take[k](key, cost, lease) end
elseif op == CONSUME then
heal[k](key)
end
report[k](key, needs[c], allowed and ADMITTED or REFUSED)
end
end
block = block + identities
cell = cell + cells
end
end
end
return concat(out)
`,
}
