--- Adds the counts of a process to those of a minute and of an hour. They are absolute, so a report that is sent twice counts once.
-- KEYS   1 a hash of what the process has added so far: each count by its name, `#` the number of its last report, `@` the
--        minute of it; 2 the live figures of the process; 3 the processes, by the time of their last report; 4 the sums of
--        the minute; 5 the sums of the hour
-- ARGV   1 the time in ms, or '' for Redis's own; 2 the age of the counts in ms; 3 the minute; 4 the process; 5 the number of
--        the report; 6 the number of the last report that is known to be added, or '' if all counts follow; 7 the live
--        figures, or '' if these counts are older than others; 8 the maximum number of names in a minute; then each count:
--        its name, its number, and if all follow, the part of it that is known to be added
-- Returns the time, and 'added'; 'minute' if the counts are of another minute; 'all' if all counts are needed.
local call = redis.call
local sent, live, processes = KEYS[1], KEYS[2], KEYS[3]
local number, known, width = tonumber(ARGV[5]), tonumber(ARGV[6]), 2
if not known then width = 3 end

local function whole(count)
  return string.format('%.0f', count)
end

-- A foreign value counts as none. A command that is not permitted ends the script before anything is written.
local function dropForeign(key, reply)
  if type(reply) ~= 'table' or not reply.err then return end
  if not string.find(reply.err, 'WRONGTYPE', 1, true) then error(reply.err, 0) end
  call('DEL', key)
end

-- The name of a count for which there is no room: its code alone tells what was decided.
local function othersOf(name)
  local code = string.match(name, '|([^|]*)$')
  return code and 'other||' .. code or name
end

local now = tonumber(ARGV[1])
if not now then
  local time = call('TIME')
  now = time[1] * 1000 + math.floor(time[2] / 1000)
end
local minute = math.floor((now - ARGV[2]) / 60000)
if minute ~= tonumber(ARGV[3]) then return { whole(now), 'minute' } end

dropForeign(sent, redis.pcall('HMGET', sent, '#'))
dropForeign(processes, redis.pcall('ZREMRANGEBYSCORE', processes, '-inf', whole(now - 10000)))
for k = 4, 5 do
  dropForeign(KEYS[k], redis.pcall('ZSCORE', KEYS[k], '=p'))
  dropForeign(KEYS[k], redis.pcall('ZCARD', KEYS[k]))
end
local before = call('HMGET', sent, '#', '@')
local last, lastMinute = tonumber(before[1]), tonumber(before[2]) or -1
if known and (not last or last < known) then return { whole(now), 'all' } end
-- A report that was overtaken holds nothing that the later one did not.
if last and last >= number then return { whole(now), 'added' } end

local names = {}
for a = 9, #ARGV, width do names[#names + 1] = ARGV[a] end
local earlier = #names > 0 and call('HMGET', sent, unpack(names)) or {}
local more, counts = {}, { '#', ARGV[5], '@', whole(minute) }
for n, name in ipairs(names) do
  local at = 9 + (n - 1) * width
  local count = tonumber(ARGV[at + 1])
  local added = tonumber(earlier[n] or '') or (not last and tonumber(ARGV[at + 2] or '')) or 0
  if count > added then more[#more + 1] = { name, whole(count - added) } end
  if count >= added then
    counts[#counts + 1] = name
    counts[#counts + 1] = ARGV[at + 1]
  end
end

-- Nothing is written before it is certain that it gets an expiry, and nothing is added before it is certain that it is not added again.
call('PEXPIRE', sent, 3600000)
call('HSET', sent, unpack(counts))
call('PEXPIRE', sent, 3600000)

local function add(key, life, isFirst)
  if isFirst then call('ZADD', key, 'INCR', 1, '=p') end
  for _, entry in ipairs(more) do
    local name = entry[1]
    if call('ZCARD', key) >= tonumber(ARGV[8]) and not call('ZSCORE', key, name) then name = othersOf(name) end
    call('ZADD', key, 'INCR', entry[2], name)
  end
  call('PEXPIRE', key, life)
end
-- As long as the names say: 7 days, and 90.
add(KEYS[4], 604800000, lastMinute ~= minute)
add(KEYS[5], 7776000000, math.floor(lastMinute / 60) ~= math.floor(minute / 60))

if ARGV[7] ~= '' then
  call('SET', live, ARGV[7], 'PX', 10000)
  call('ZADD', processes, whole(now), ARGV[4])
  call('PEXPIRE', processes, 3600000)
  call('ZREMRANGEBYSCORE', processes, whole(now + 10000), '+inf')
end
return { whole(now), 'added' }
