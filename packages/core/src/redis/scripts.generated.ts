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
  sha1: '6142b52cfbac37b08871ba055fa67c78c15dc8f4',
  source: `local ARGV, KEYS = ARGV, KEYS
local tryCall = redis.pcall
local call, floor, ceil, max, min = redis.call, math.floor, math.ceil, math.max, math.min
local packBytes, unpackBytes = struct.pack, struct.unpack
local sub, rep, format = string.sub, string.rep, string.format
local CONSUME, PEEK, CHARGE, REFUND, RELEASE = 0, 1, 2, 3, 4
local RESERVING = 8
local BUCKET, LOG, SEGMENTS, COUNTER, CONCURRENCY = 1, 2, 3, 4, 5
local LINGER = 10000
local now, slack = tonumber(ARGV[1]), 0
if now then
slack = 3600000
else
local time = call('TIME')
now = time[1] * 1000 + floor(time[2] / 1000)
end
local out, n = { now }, 1
local kernel, N, first, last = {}, {}, {}, {}
local C, D, E, F, G, H, L, O, S, T, V, W = {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}
local prepare, look, take, giveBack, renew, heal, report = {}, {}, {}, {}, {}, {}, {}
local function clock_instant(at, now, horizonMs)
if at > now and at <= now + horizonMs then return at end
return now
end
local function clock_isAhead(at, now, horizonMs)
return at > now + horizonMs
end
--@when bucket
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
local function bucket_remaining(debt, windowMs, capacity)
return floor((capacity * windowMs - debt) / windowMs)
end
local function bucket_refund(debt, at, cost, receipt, chargedAt, limit, windowMs, stepMs)
local outstanding = bucket_drain(receipt, min(chargedAt, at), at, limit, stepMs)
return max(0, debt - min(cost * windowMs, outstanding))
end
local function bucket_wait(c, cost)
local p = first[c]
local wait = bucket_waitFor(D[c], T[c], cost, N[p], N[p + 1], N[p + 2], N[p + 3])
if wait > 0 then return wait + T[c] - now end
return wait
end
local function bucket_write(c, key)
local p = first[c]
local life = bucket_wait(c, N[p + 2])
L[c] = life
if life <= 0 then
if V[c] then call('DEL', key) end
return
end
local ends = now + life
if V[c] and ends <= E[c] then
call('SETRANGE', key, '0', packBytes('>I7I6', D[c], T[c]))
return
end
if V[c] then ends = ends + min(LINGER, ceil(N[p + 2] * N[p + 1] / N[p])) end
call('SET', key, packBytes('>I7I6I6', D[c], T[c], ends), 'PX', ends - now + slack)
end
look[BUCKET] = function(c, key, cost)
local p = first[c]
local limit, windowMs, stepMs = N[p], N[p + 1], N[p + 3]
local stored = tryCall('GET', key)
if stored and #stored == 19 then
local debt, since, ends = unpackBytes('>I7I6I6', stored)
local at = clock_instant(since, now, windowMs)
D[c], T[c], V[c], E[c] = bucket_drain(debt, min(since, at), at, limit, stepMs), at, since, ends
else
D[c], T[c], V[c] = 0, now, nil
end
L[c] = nil
return bucket_waitFor(D[c], T[c], cost, limit, windowMs, N[p + 2], stepMs)
end
take[BUCKET] = function(c, key, cost)
local p = first[c]
D[c] = bucket_charge(D[c], cost, N[p + 1], N[p + 2])
bucket_write(c, key)
end
giveBack[BUCKET] = function(c, key, cost, receipt, chargedAt)
if not V[c] then return end
local p = first[c]
D[c] = bucket_refund(D[c], T[c], cost, receipt, chargedAt, N[p], N[p + 1], N[p + 3])
bucket_write(c, key)
end
heal[BUCKET] = function(c, key)
if V[c] and clock_isAhead(V[c], now, N[first[c] + 1]) then bucket_write(c, key) end
end
report[BUCKET] = function(c, key, cost, admitted)
local p = first[c]
out[n + 1] = bucket_remaining(D[c], N[p + 1], N[p + 2])
out[n + 2] = admitted and 0 or bucket_wait(c, cost)
out[n + 3] = L[c] or bucket_wait(c, N[p + 2])
out[n + 4] = admitted and D[c] or bucket_wait(c, out[n + 1] + 1)
n = n + 4
end
--@end
--@when log
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
local CHUNK = 16
local source, base, chunk, chunkFrom = '', 0, '', 0
local function log_open(c, key)
source, base = key, W[c]
chunk, chunkFrom = C[c] or '', 0
end
local function log_entry(i)
local at = (i - chunkFrom) * 6
if at < 0 or at >= #chunk then
chunk = call('GETRANGE', source, base + i * 6, base + (i + CHUNK) * 6 - 1)
chunkFrom, at = i, 0
end
return (unpackBytes('>I6', chunk, at + 1))
end
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
local function log_rewrite(c, key, kept, entries, linger)
D[c] = D[c] - kept
for pair = first[c] + 2, first[c] + last[c], 2 do H[pair] = H[pair] - kept end
E[c] = O[c] + N[first[c] + 1] + linger
call('SET', key, log_header(c) .. entries, 'PX', E[c] - now + slack)
end
local function log_advanceAll(c, key, at)
log_open(c, key)
for pair = first[c] + 2, first[c] + last[c], 2 do log_advance(c, pair, 0, at) end
end
local function log_replace(c, key, entries)
C[c], D[c] = entries, #entries / 6
O[c] = D[c] > 0 and unpackBytes('>I6', entries, #entries - 5) or nil
log_advanceAll(c, key, T[c])
end
local function log_rewriteReplaced(c, key)
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
--@end
--@when segments
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
prepare[SEGMENTS] = function(c)
local width, top = 1, 256
while top <= N[first[c]] do
width = width + 1
top = top * 256
end
W[c], F[c] = width, '>I' .. width
end
local function segments_wait(c, cost)
local p = first[c]
local segments, segmentMs = N[p + 2], N[p + 1] / N[p + 2]
local wait = window_waitFor(C[c], D[c], O[c], cost, N[p], segments, segmentMs, N[p + 3], W[c], F[c])
if wait > 0 then return wait + T[c] - now end
return wait
end
local function segments_reset(c)
local p = first[c]
local reset = window_resetAfter(C[c], O[c], N[p + 2], N[p + 1] / N[p + 2], N[p + 3], W[c], F[c])
if reset > 0 then return reset + T[c] - now end
return 0
end
local function segments_write(c, key)
if segments_reset(c) == 0 then
if V[c] then call('DEL', key) end
return
end
local life = N[first[c] + 1] + N[first[c] + 1] / N[first[c] + 2] - O[c] + T[c] - now
call('SET', key, packBytes('>I6', S[c]) .. packBytes(F[c], D[c]) .. C[c], 'PX', life + slack)
end
local function segments_add(c, k, units)
local width, counts = W[c], C[c]
local count = packBytes(F[c], window_nth(counts, k, width, F[c]) + units)
C[c] = sub(counts, 1, k * width) .. count .. sub(counts, (k + 1) * width + 1)
if k < N[first[c] + 2] then D[c] = D[c] + units end
end
local function segments_room(c)
local p = first[c]
local edge = window_nth(C[c], N[p + 2], W[c], F[c])
return max(0, N[p] - D[c] - window_edgeUnits(edge, O[c], N[p + 1] / N[p + 2], N[p + 3]))
end
local function segments_bringBack(c)
local p = first[c]
local segments, width = N[p + 2], W[c]
if N[p + 3] < WEIGHTED_DOWN then return end
local edge = window_nth(C[c], segments, width, F[c])
C[c] = sub(C[c], 1, segments * width) .. rep('\\0', width)
segments_add(c, segments - 1, min(edge, N[p] - D[c]))
end
look[SEGMENTS] = function(c, key, cost)
local p = first[c]
local windowMs, segments, width, format = N[p + 1], N[p + 2], W[c], F[c]
local segmentMs = windowMs / segments
local stored = tryCall('GET', key)
if stored and #stored ~= 6 + (segments + 2) * width then stored = false end
local at, newest = now, nil
if stored then
newest = unpackBytes('>I6', stored)
at = clock_instant(newest * segmentMs, now, windowMs)
end
local segment = floor(at / segmentMs)
local by = stored and max(0, segment - newest) or segments + 1
if by > segments then
D[c], C[c] = 0, rep('\\0', (segments + 1) * width)
else
D[c], C[c] = unpackBytes(format, stored, 7), sub(stored, 7 + width)
if by > 0 then
D[c] = D[c] - window_leaving(C[c], by, segments, width, format)
C[c] = rep('\\0', by * width) .. sub(C[c], 1, (segments + 1 - by) * width)
end
end
S[c], O[c], T[c], V[c] = segment, at - segment * segmentMs, at, newest
if newest and clock_isAhead(newest * segmentMs, now, windowMs) then segments_bringBack(c) end
return segments_wait(c, cost)
end
take[SEGMENTS] = function(c, key, cost)
segments_add(c, 0, min(cost, segments_room(c)))
if V[c] == S[c] then
call('SETRANGE', key, '6', packBytes(F[c], D[c]) .. sub(C[c], 1, W[c]))
else
segments_write(c, key)
end
end
giveBack[SEGMENTS] = function(c, key, cost, receipt)
local k = S[c] - receipt
if not V[c] or k < 0 or k > N[first[c] + 2] then return end
segments_add(c, k, -min(cost, window_nth(C[c], k, W[c], F[c])))
segments_write(c, key)
end
heal[SEGMENTS] = function(c, key)
local p = first[c]
if V[c] and clock_isAhead(V[c] * N[p + 1] / N[p + 2], now, N[p + 1]) then segments_write(c, key) end
end
report[SEGMENTS] = function(c, key, cost, admitted)
out[n + 1] = segments_room(c)
out[n + 2] = admitted and 0 or segments_wait(c, cost)
out[n + 3] = segments_reset(c)
out[n + 4] = admitted and S[c] or segments_wait(c, out[n + 1] + 1)
n = n + 4
end
--@end
--@when counter
local function counter_startOf(at, windowMs, byClock)
if byClock then return floor(at / windowMs) * windowMs end
return at
end
local function counter_waitFor(count, endsIn, cost, limit)
if cost > limit then return -1 end
if count + cost <= limit then return 0 end
return endsIn
end
local function counter_endsIn(c)
return T[c] + N[first[c] + 1] - now
end
local function counter_write(c, key)
if D[c] == 0 then
call('DEL', key)
elseif V[c] == T[c] then
call('SETRANGE', key, '0', packBytes('>I7', D[c]))
else
call('SET', key, packBytes('>I7I6', D[c], T[c]), 'PX', counter_endsIn(c) + slack)
end
end
look[COUNTER] = function(c, key, cost)
local p = first[c]
local windowMs = N[p + 1]
local stored = tryCall('GET', key)
local at, count, start = now, 0, nil
V[c] = nil
if stored and #stored == 13 then
local units, since = unpackBytes('>I7I6', stored)
V[c] = since
at = clock_instant(since, now, windowMs)
if at < since + windowMs then
count = units
if since <= at then start = since end
end
end
D[c], T[c] = count, start or counter_startOf(at, windowMs, N[p + 3] == 1)
return counter_waitFor(count, counter_endsIn(c), cost, N[p])
end
take[COUNTER] = function(c, key, cost)
D[c] = min(N[first[c]], D[c] + cost)
counter_write(c, key)
end
giveBack[COUNTER] = function(c, key, cost, receipt)
if not V[c] or T[c] ~= receipt then return end
D[c] = max(0, D[c] - cost)
counter_write(c, key)
end
heal[COUNTER] = function(c, key)
if V[c] and clock_isAhead(V[c], now, N[first[c] + 1]) then counter_write(c, key) end
end
report[COUNTER] = function(c, key, cost, admitted)
local limit = N[first[c]]
out[n + 1] = limit - D[c]
out[n + 2] = admitted and 0 or counter_waitFor(D[c], counter_endsIn(c), cost, limit)
out[n + 3] = D[c] == 0 and 0 or counter_endsIn(c)
out[n + 4] = admitted and T[c] or counter_waitFor(D[c], counter_endsIn(c), out[n + 1] + 1, limit)
n = n + 4
end
--@end
--@when concurrency
local nowText = format('%.0f', now)
local function concurrency_endAt(c, key, rank)
local lease = call('ZRANGE', key, rank, rank, 'WITHSCORES')
return lease[2] and min(tonumber(lease[2]), now + N[first[c] + 1]) or now
end
local function concurrency_waitFor(c, key, cost)
local limit = N[first[c]]
if cost > limit then return -1 end
local missing = D[c] + cost - limit
if cost == 0 or missing <= 0 then return 0 end
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
--@end
local blockKeys = tonumber(ARGV[2])
if blockKeys < 0 then
if tryCall('GET', KEYS[1]) then return { now, -2 } end
end
local anyBlocked = blockKeys > 0 and call('EXISTS', unpack(KEYS, 1, blockKeys)) > 0
local reasons = {}
local a, block, cell = 4, 1, max(blockKeys, -blockKeys)
for _ = 1, tonumber(ARGV[3]) do
local identities, cells = tonumber(ARGV[a]), tonumber(ARGV[a + 1])
a = a + 2
local at, limits, takesPlaces = 1, 0, false
for c = 1, cells do
local k, params = tonumber(ARGV[a]), tonumber(ARGV[a + 1])
kernel[c], first[c], last[c] = k, at, params - 1
for i = 0, params - 1 do N[at + i] = tonumber(ARGV[a + 2 + i]) end
at = at + params
a = a + 2 + params
limits = limits + (k == LOG and (params - 2) / 2 or 1)
if prepare[k] then prepare[k](c) end
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
look[k](c, key, 0)
if op == REFUND then
giveBack[k](c, key, costs[c], tonumber(ARGV[a]), chargedAt, lease)
a = a + 1
elseif k == CONCURRENCY then
if op == RELEASE then
giveBack[k](c, key, costs[c], 0, 0, lease)
else
renew[k](c, key, costs[c], lease)
end
end
report[k](c, key, 0, true)
end
elseif ends then
reasons[#reasons + 1] = { n + 3, reason }
out[n + 1], out[n + 2] = -1, tonumber(ends) - now
for i = 3, limits * 4 do out[n + i] = 0 end
n = n + limits * 4
else
local allowed, possible = true, true
for c = 1, cells do
local wait = look[kernel[c]](c, KEYS[cell + c], needs[c])
if wait ~= 0 then allowed = false end
if wait < 0 then possible = false end
end
local charged = op ~= PEEK and (allowed or (op == CHARGE and possible))
for c = 1, cells do
local key, k, cost = KEYS[cell + c], kernel[c], costs[c]
if charged then
if cost > 0 and (allowed or k ~= CONCURRENCY) then take[k](c, key, cost, 0, 0, lease) end
elseif op == CONSUME then
heal[k](c, key)
end
report[k](c, key, needs[c], allowed)
end
end
block = block + identities
cell = cell + cells
end
end
end
for i, reason in ipairs(reasons) do
out[reason[1]] = n + i - 1
out[n + i] = reason[2]
end
return out
`,
}
