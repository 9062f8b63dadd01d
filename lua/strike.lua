--- Strikes an identity apart from its decisions: for a refusal that a queue or another slot has made final, for an
-- outcome, or by hand. Or clears its strikes.
-- KEYS   1 the record of its strikes; then its block keys: the key of the ban, and the keys of blocks during which
--        strikes do not count; last the marker that exists while any identity is blocked, if all keys are on one
--        server
-- ARGV   1 the time in ms, or '' for Redis's own; 2 the weight, 0 to clear all strikes; 3 the jitter of a ban in ms; 4
--        the reason; 5 the number of block keys; from 6 on the terms of the ban, as in strikes.lua
-- Returns the time, the end of the block or ban in force that ends last, 0 if there is none, its reason, and whether
-- this strike has started it: 1 or 0.
local ARGV, KEYS = ARGV, KEYS
local tryCall = redis.pcall
local call, floor, max, min = redis.call, math.floor, math.max, math.min
local packBytes = struct.pack

local function number(i)
  return ARGV[i] + 0
end

--- A value of another type counts as missing. A forbidden command fails.
local function requireRead(value)
  if type(value) == 'table' and not string.match(value.err, '^WRONGTYPE') then error(value.err) end
end

local now, slack
if ARGV[1] ~= '' then
  now, slack = number(1), 3600000
else
  local time = call('TIME')
  now, slack = time[1] * 1000 + floor(time[2] / 1000), 0
end

--- @include "kernels/clock"
--- @include "strikes"

local weight, lastBlock, ends, reason, begun = number(2), 1 + number(5), 0, '', '0'
for b = 2, lastBlock do
  local block = tryCall('GET', KEYS[b])
  requireRead(block)
  if type(block) == 'string' then
    local last, said = string.match(block, '^(%d+) (.*)$')
    if last and tonumber(last) > max(now, ends) then ends, reason = tonumber(last), said end
  end
end
if weight == 0 then
  local stored = tryCall('GET', KEYS[1])
  requireRead(stored)
  if type(stored) == 'string' and #stored >= 7 then
    local rung, since = struct.unpack('>BI6', stored)
    strikes_write(KEYS[1], rung, since, '', number(7), number(8))
  end
elseif ends == 0 then
  local base = strikes_base(KEYS[1], #'strikes', '')
  ends, reason = strikes_strike(base, KEYS[lastBlock + 1] or '', weight, number(3), ARGV[4], 6, #ARGV)
  if ends > 0 then begun = '1' end
end
return { string.format('%.0f', now), string.format('%.0f', ends), reason, begun }
