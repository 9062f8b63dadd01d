--- Checks which permits may be free, for waiting requests. A decision costs several times as much.
-- KEYS   the keys of permits; none if they are at the end of ARGV, like those of several slots of a cluster
-- ARGV   1 the time in ms, or '' for Redis's own; for each key the maximum held permits that leave room; the keys
-- Returns for each key 1 if there may be room, else 0, as one text.
local call, floor = redis.call, math.floor
local clock = ARGV[1]
--- @include "shared/now"
local from = string.format('(%.0f', now)
local count = #KEYS > 0 and #KEYS or (#ARGV - 1) / 2
local found = {}
for i = 1, count do
  local held = redis.pcall('ZCOUNT', KEYS[i] or ARGV[1 + count + i], from, '+inf')
  -- Errors count as room: the decision that follows reports them.
  found[i] = type(held) == 'number' and held > tonumber(ARGV[1 + i]) and '0' or '1'
end
return table.concat(found)
