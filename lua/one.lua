--- Decides one charge of one cell, like most decisions under light traffic: `decide.lua` for a single decision. The
-- store puts a line before it that declares the cell's parameters as literals: P1, P2 and so on, or a table PARAMS for
-- logs of several limits. There is one script for each plan, and no parameters to read on every run.
--
-- KEYS
--   1             the block key, or the marker that any block sets
--   2             the key of the cell
--   3             in scripts with the part `turns`: the record of its waiters, see shared/turns.lua
--   4             `turns`: the marker of waiters, omitted in a cluster
-- ARGV
--   1             the cost, above 0; omitted for 1
--   2             the time in ms; omitted or '' for Redis's own
--   3             the id of its permits, if it takes any
-- Returns the same as `decide.lua` for one decision; MAY_BE_BLOCKED if KEYS[1] exists; SOMEBODY_WAITS if a request waits
-- for the cell, in scripts with the part `turns`.

local given, KEYS = ARGV, KEYS
--- @include "shared/names"
--- @include "shared/reads"

-- The kind of the cell and its number of parameters, which the build knows.
local kind, paramCount
-- Cells read their parameters from the arguments, as in `decide.lua`.
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

if tryCall('GET', KEYS[1]) then return MAY_BE_BLOCKED end
--- @when turns
local waiting = call('EXISTS', unpack(KEYS, 3))
if waiting == #KEYS - 2 then return SOMEBODY_WAITS end
--- @end
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
--- @when turns
-- In a cluster, requests may wait for other cells.
if #KEYS == 3 then waiting = 1 end
say(packBytes('>I2B', 0, waiting))
--- @end
return reply
