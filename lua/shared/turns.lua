--- The waiters for one limit of one key, as each process reports them. A record is a list of entries of 34 bytes: the
-- process (12), the class of its waiters (8), since when the first of that class waits, minus the head start of the
-- class (8), until when this is trusted (6). The class with the earlier instant goes first. An entry that is not
-- renewed lapses, so a dead process does not delay others. `turnsNow`: the instant by Redis's clock, whatever the
-- clock of decisions, as processes renew their entries by timers.
--- @include "shared/mark-waiting"
local ENTRY = 34

--- The entries of other processes that are still trusted, and until when the last of them is.
local function turns_others(key, process)
  local record = redis.pcall('GET', key)
  if type(record) == 'table' and not string.match(record.err, '^WRONGTYPE') then error(record.err) end
  local others, latest = '', turnsNow
  -- A foreign value counts as no waiters, and is replaced.
  if type(record) ~= 'string' or #record % ENTRY ~= 0 then return others, latest end
  for at = 1, #record, ENTRY do
    local ends = struct.unpack('>I6', record, at + 28)
    if ends > turnsNow and string.sub(record, at, at + 11) ~= process then
      others = others .. string.sub(record, at, at + ENTRY - 1)
      if ends > latest then latest = ends end
    end
  end
  return others, latest
end

--- Replaces a process's earlier entries by its present classes. In ARGV from `a` on: their number, and for each its
-- class and how long its first request has waited, including the head start. `marker`: the marker of waiters; '' in a
-- cluster. Returns whether any request waits now.
local function turns_write(key, process, ttlMs, marker, a, others, latest)
  local record = others
  for _ = 1, ARGV[a] do
    local class, aheadMs = ARGV[a + 1], ARGV[a + 2]
    record = record .. process .. struct.pack('>ddI6', class, turnsNow - aheadMs, turnsNow + ttlMs)
    if turnsNow + ttlMs > latest then latest = turnsNow + ttlMs end
    a = a + 2
  end
  if record == '' then
    redis.call('DEL', key)
    return false
  end
  redis.call('SET', key, record, 'PX', string.format('%.0f', latest - turnsNow))
  if marker ~= '' then mark_waiting(marker, latest - turnsNow) end
  return true
end
