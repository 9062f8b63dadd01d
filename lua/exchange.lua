--- Exchanges the counts of a process that decides by itself for a while: adds its charges in full, even beyond the limit, and
-- returns the present counts. Decides nothing.
--
-- KEYS   the marker that every block sets, if there is one; then for each count its block keys and its own key.
--        Or none: these, of any slots of a cluster, are then at the end of ARGV.
-- ARGV   1 the time in ms, or '' for Redis's own
--        2 the index of the first key in ARGV, 0 if they are in KEYS
--        3 whether the first key is the marker: 1 or 0
--        4 the number of cells; for each cell: kernel, number of params, params, the number of block keys per count, the
--          number of counts; for each count the number of values that follow, 0 if nothing was charged, and these values in
--          the form of `merge`.
-- Returns one string: the time in ms (6 bytes), then for each count one byte, ADMITTED, and its state as `state` writes it;
-- BLOCKED before the state if the identity is blocked; ELSEWHERE alone if a key is on another node: nothing was added.

local ARGV, KEYS = ARGV, KEYS
--- @include "shared/names"

local function number(i)
  return ARGV[i] + 0
end

--- @include "shared/reads"

local clock = ARGV[1]
--- @include "shared/now"

local pieces = { packBytes('>I6', now) }

local function say(piece)
  pieces[#pieces + 1] = piece
end

-- The current cell: its params are in ARGV, from first[1] to last[1], as numbers.
local first, last = {}, {}
--- @include "shared/kinds"

local key = 1
if number(2) > 0 then KEYS, key = ARGV, number(2) end
local anyBlocked = true
if number(3) == 1 then
  anyBlocked = tryCall('GET', KEYS[key])
  key = key + 1
end

--- Whether one of these block keys is in force.
local function isBlocked(from, to)
  for k = from, to do
    local value = tryCall('GET', KEYS[k])
    requireRead(value)
    if type(value) == 'string' then
      local ends = string.match(value, '^(%d+) ')
      if ends and tonumber(ends) > now then return true end
    end
  end
  return false
end

local a = 5
for _ = 1, number(4) do
  local kind, params = number(a), number(a + 1)
  first[1], last[1] = a + 2, a + 1 + params
  a = a + 2 + params
  for p = first[1], last[1] do ARGV[p] = number(p) end
  local blockKeys, counts = number(a), number(a + 1)
  a = a + 2
  for _ = 1, counts do
    -- Repeated for each count, as cells cache the bytes of new clients, which depend on the time of the charge.
    if prepare[kind] then prepare[kind](1) end
    open[kind](1)
    local own = KEYS[key + blockKeys]
    local numbers = number(a)
    elsewhere = false
    local outcome = ADMITTED
    if anyBlocked and isBlocked(key, key + blockKeys - 1) then outcome = BLOCKED end
    look[kind](own, 0)
    if elsewhere then
      say(packBytes('B', ELSEWHERE))
    else
      -- A state from an impossible time is corrected as by a decision, or it would never end.
      if numbers > 0 then merge[kind](own, a + 1, a + numbers) else heal[kind](own) end
      say(packBytes('B', outcome) .. state[kind]())
    end
    a = a + 1 + numbers
    key = key + blockKeys + 1
  end
end

return concat(pieces)
