--- Changes entries of one shard of the index of blocks: the blocked or banned identities, with reason, start, end and count.
-- An entry is a field of a hash, `until since times ended reason`. A sorted set has the version of its last change, so that
-- a process that knows a version finds later changes. The field '' is the shard's head: its version, its incarnation, drawn
-- when the shard was made, and its epoch. Entries up to the epoch are void.
-- The end of a forgotten identity has the field `["","#salt.hash"]`, with the hash of the salt and the earlier field. Each
-- salt in use follows the incarnation, after a `~`.
-- KEYS   1 the hash; 2 the sorted set; if block keys are on the same server: 3 the marker that exists while any identity
--        is blocked, then for each change the block key and the key of strikes
-- ARGV   1 the time in ms, or '' for Redis's own; 2 the incarnation of a new shard; 3 the known epoch of the shard, which it
--        may have lost; then for each change:
--        the field; the operation; three numbers; the reason
--          BLOCK: for how many ms, 0, 0; or 0, until when, 0
--          KEEP, for a known entry: until when, since when, how often, or 0 for once more than the shard has. A later entry
--            of the shard remains.
--          END: until when at least a process may know the block and write it again; 0, or 1 to take that as the exact time;
--            0, or the start of a known end: a later entry of the shard remains
--          ERASE: like END, for a forgotten identity. The reason is the new field of the end.
-- Returns the time, the version before, the head, and for each change 1 if it was made, else 0, and the present entry.
local call, tryCall, format, match = redis.call, redis.pcall, string.format, string.match
local now, slack
if ARGV[1] ~= '' then
  now, slack = tonumber(ARGV[1]), 3600000
else
  local time = call('TIME')
  now, slack = time[1] * 1000 + math.floor(time[2] / 1000), 0
end
local entries, changes, marker = KEYS[1], KEYS[2], KEYS[3]

--- @include "shared/rung"

local function text(number)
  return format('%.0f', number)
end

--- Returns the end, the start, the count, whether it was ended by hand (1 or 0), and the entry; nothing for a missing
-- field.
local function read(field)
  local value = call('HMGET', entries, field)[1]
  local ends, since, times, ended = match(value or '', '^(%d+) (%d+) (%d+) ([01]) ')
  return tonumber(ends), tonumber(since), tonumber(times), tonumber(ended), value
end

-- The index lives as long as a process may have missed the epoch.
local life = math.max(1000, ARGV[3] + 86400000 - now)
-- Nothing is written before it is certain that it gets an expiry.
for _, key in ipairs({ entries, changes }) do
  local left = call('PTTL', key)
  call('PEXPIRE', key, left > 0 and left or 86400000)
end
-- A value of another type counts as missing.
local version, incarnation, epoch = match(tryCall('HMGET', entries, '')[1] or '', '^(%d+) (%S+) (%d+)$')
local size = tryCall('ZCARD', changes)
if not version or type(size) == 'table' or call('HLEN', entries) ~= size + 1 then
  -- An eviction removed one of the two keys. The rest is useless; processes that know the entries write them again.
  call('DEL', entries, changes)
  version, incarnation = 0, ARGV[2]
end
version, epoch = tonumber(version), math.max(tonumber(epoch or 0), tonumber(ARGV[3]))

local reply = { text(now), text(version), '' }
-- A walk in a circle removes ended entries, a few with each call.
for _ = 1, 2 do
  local size = call('ZCARD', changes)
  if size > 0 then
    local rank = version - math.floor(version / size) * size
    local field = call('ZRANGE', changes, rank, rank)[1]
    local ends = read(field)
    if not ends or ends + slack <= now then
      call('HDEL', entries, field)
      call('ZREM', changes, field)
    end
  end
end

--- The instant at which an entry of a forgotten identity ended, or 0.
local function erasedSince(field)
  local last = 0
  for salt in string.gmatch(incarnation, '~([^~]+)') do
    local _, since = read('["","#' .. salt .. '.' .. redis.sha1hex(salt .. field) .. '"]')
    last = math.max(last, since or 0)
  end
  return last
end

for a = 4, #ARGV, 6 do
  local field, op = ARGV[a], ARGV[a + 1]
  local first, second, third, reason = tonumber(ARGV[a + 2]), tonumber(ARGV[a + 3]), tonumber(ARGV[a + 4]), ARGV[a + 5]
  local knownEnds, knownSince, knownTimes, knownEnded, value = read(field)
  -- Later than all known entries, even within a ms: of two entries of one instant, the end is the later one.
  local erased, under = erasedSince(field), field
  local instant = math.max(now, epoch + 1, (knownSince or 0) + (op == 'BLOCK' and knownEnded or 0), erased + 1)
  local ends, since, times, ended, applies
  if op == 'BLOCK' then
    ends, times, ended, applies = second > 0 and second or now + first, (knownTimes or 0) + 1, '0', true
    since = instant
  elseif op == 'KEEP' then
    ends, since, ended = first, second, '0'
    times = third > 0 and third or (knownTimes or 0) + 1
    applies = ends > now and since > math.max(epoch, erased) and (not knownSince or knownSince < since)
  else
    ends, times, ended = math.max(first, second > 0 and 0 or knownEnds or 0), knownTimes or 0, '1'
    since = third > 0 and third or instant
    applies = ends + slack > now and (third == 0 or ((knownSince or 0) <= third and erased <= third))
  end
  if applies and op == 'ERASE' then
    local otherEnds, otherSince = read(reason)
    ends, since, times = math.max(ends, otherEnds or 0), math.max(since, otherSince or 0), 0
    under, reason = reason, ''
  end
  local salt = match(under, '^%["","#(%d+%.[%w_-]+)%.%x+"%]$')
  if applies and salt and not string.find(incarnation .. '~', '~' .. salt .. '~', 1, true) then
    incarnation = incarnation .. '~' .. salt
  end
  if applies then
    value = text(ends) .. ' ' .. text(since) .. ' ' .. text(times) .. ' ' .. ended .. ' ' .. reason
    version = version + 1
    call('ZADD', changes, version, under)
    call('PEXPIRE', changes, math.max(life, call('PTTL', changes)))
    call('HSET', entries, under, value)
    if under ~= field then
      call('HDEL', entries, field)
      call('ZREM', changes, field)
    end
    life = math.max(life, ends - now + slack)
  end
  if marker then
    local block, strikes = KEYS[4 + (a - 4) / 3], KEYS[5 + (a - 4) / 3]
    if op == 'END' or op == 'ERASE' then
      -- A block that the shard has lost may be later than an earlier end.
      if third == 0 or (applies and knownSince) then call('DEL', block, strikes) end
    elseif applies then
      local ms = ends - now + slack
      call('SET', block, text(ends) .. ' ' .. reason, 'PX', ms)
      if call('PTTL', marker) <= ms then call('SET', marker, '1', 'PX', ms) end
      rung_keep(strikes, ends, reason)
    end
  end
  reply[#reply + 1] = (applies and 1 or 0) .. (value or '')
end
reply[3] = text(version) .. ' ' .. incarnation .. ' ' .. text(epoch)
call('HSET', entries, '', reply[3])
for _, key in ipairs({ entries, changes }) do
  if call('PTTL', key) < life then call('PEXPIRE', key, life) end
end
return reply
