--- Looks which permits may be free, for requests that wait for them: a decision costs several times as much.
-- KEYS   the keys of permits; none where they are at the end of ARGV, as those of several slots of a cluster are
-- ARGV   1 the time in ms, or '' for Redis's own; for each key how many may be held so that there is room; the keys
-- Returns for each key 1 where there may be room, else 0, as one text.
local call, floor = redis.call, math.floor
local clock = ARGV[1]
--- @include "shared/now"
local from = string.format('(%.0f', now)
local count = #KEYS > 0 and #KEYS or (#ARGV - 1) / 2
local found = {}
for i = 1, count do
  local held = redis.pcall('ZCOUNT', KEYS[i] or ARGV[1 + count + i], from, '+inf')
  -- A decision finds out what an error means.
  found[i] = type(held) == 'number' and held > tonumber(ARGV[1 + i]) and '0' or '1'
end
return table.concat(found)
