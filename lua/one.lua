--- Decides one charge of one cell, as most decisions of thin traffic are: `decide.lua` for a batch that is no batch.
-- The store puts a line before it that declares the cell's parameters: P1, P2 and so on, as numbers of the text, or for
-- logs of several limits a table, PARAMS. So there is one script for each plan, and nothing to be read on every run.
--
-- KEYS   1 the block key, or the marker that any block sets; 2 the key of the cell
-- ARGV   1 the cost, above 0, none for 1; 2 the time in ms, none or '' for Redis's own; 3 the id of its permits, if it takes any
-- Returns what `decide.lua` does for one decision; with KEYS[1] there, nothing is decided, and the string is empty.

local given, KEYS = ARGV, KEYS
--- @include "shared/names"
--- @include "shared/reads"

-- The kind of the cell, and how many parameters it has: known to the build.
local kind, paramCount
-- Cells look for their parameters where `decide.lua` has them, among the arguments.
--- @when shared
local ARGV = PARAMS
paramCount = #PARAMS
--- @end
--- @when single
local ARGV = {}
ARGV[1], ARGV[2], ARGV[3], ARGV[4] = P1, P2, P3, P4
--- @end
local first = {}
first[1] = 1
local last = {}
last[1] = paramCount

local clock = given[2] or ''
--- @include "shared/now"

local reply = packBytes('>I6', now)

local function say(piece)
  reply = reply .. piece
end

--- @include "shared/kinds"

if tryCall('GET', KEYS[1]) then return '' end
local cost, key = (given[1] or 1) + 0, KEYS[2]
if prepare[kind] then prepare[kind](1) end
open[kind](1)
local outcome = REFUSED
if look[kind](key, cost) == 0 then
  outcome = ADMITTED
  take[kind](key, cost, given[3])
else
  heal[kind](key)
end
report[kind](key, cost, outcome)
return reply
