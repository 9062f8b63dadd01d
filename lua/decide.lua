--- Decides a batch of charges, each all or none, in one run.
--
-- KEYS   the block keys of every decision, or instead of all of them the marker that any block sets;
--        then the cell keys of every decision, in decision order.
-- ARGV   1 the time in ms, or '' for Redis's own
--        2 how many KEYS are block keys; -1 where the marker stands for them
--        3 how many plans follow; for each plan:
--          how many identities, how many cells; for each cell: kernel, number of params, params;
--          how many runs follow; for each run of decisions that are alike:
--            op, how many decisions, and per cell its cost;
--            if op is RESERVING more than an op: per cell the units that must have room;
--            if the plan takes places: per decision the name of its lease;
--            if op is REFUND: when it was charged, and per cell the receipt (such a run is one decision).
-- A part between `@when` and `@end` is left out of batches that do not need it, by kernel and where no plan has several
-- cells: Redis makes every function and table anew on every run. What gives back is always there: a script that is new
-- to Redis is sent a second time, and who asks after a refund or release must not overtake it.
-- Returns one string: the time in ms (6 bytes), then for each decision and each of its cells whether the decision
-- was admitted (1 byte: 0 or 1) and what the cell says, as its `report` writes it. Mostly that is its state: what
-- follows from a state, the store works out by the same kernels, and not here, where everybody waits for it.
-- A blocked decision is the byte 2, the ms until the block ends (7), the length of the reason (2), the reason.
-- With the marker there, nothing is decided, and the string is empty.

local ARGV, KEYS = ARGV, KEYS
-- A first read goes through pcall: its error is a table, of length 0, so what is not ours counts as no state,
-- and the next charge replaces it. One foreign value must not fail the decisions that share its batch.
local tryCall = redis.pcall
local call, floor, ceil, max, min = redis.call, math.floor, math.ceil, math.max, math.min
local packBytes, unpackBytes = struct.pack, struct.unpack
local sub, rep, format, concat = string.sub, string.rep, string.format, table.concat

local CONSUME, PEEK, CHARGE, REFUND, RELEASE = 0, 1, 2, 3, 4
-- Added to the op of a run that needs more room than it charges.
local RESERVING = 8
local REFUSED, ADMITTED, BLOCKED = 0, 1, 2
local BUCKET, LOG, SEGMENTS, COUNTER, CONCURRENCY = 1, 2, 3, 4, 5

-- How much longer than it must a key may live, in ms, where that saves setting its expiry again.
local LINGER = 10000

local now, slack = tonumber(ARGV[1]), 0
if now then
  -- Redis expires keys by its own clock; by another one a state must not end early.
  slack = 3600000
else
  local time = call('TIME')
  now = time[1] * 1000 + floor(time[2] / 1000)
end

local out, n = { packBytes('>I6', now) }, 1
-- The plan at hand: cell c has its params from N[first[c]] on, and last[c] is the offset of its last.
local kernel, N, first, last = {}, {}, {}, {}

-- What a kind of cell can do, by kernel. There is one cell at hand: `open` names its params, `look` finds its state,
-- brings it to the present and returns whether a cost has room (0 now, -1 never, else later); the others act on what it
-- found. Where a decision has several cells, `keep` puts that aside, and `recall` brings it back.
local prepare, open, look, keep, recall, take, giveBack, renew, heal, report = {}, {}, {}, {}, {}, {}, {}, {}, {}, {}
--- @when several
-- What is put aside, by cell; each kind of cell says what where.
local A, B, C, D, E, G, L, M, O, Q = {}, {}, {}, {}, {}, {}, {}, {}, {}, {}
--- @end

--- @include "kernels/clock"
-- Each in a block of its own: a function of Lua may have 200 locals.
--- @when bucket
do
--- @include "cells/bucket"
end
--- @end
--- @when log
do
--- @include "cells/log"
end
--- @end
--- @when segments
do
--- @include "cells/segments"
end
--- @end
--- @when counter
do
--- @include "cells/counter"
end
--- @end
--- @when concurrency
do
--- @include "cells/concurrency"
end
--- @end

local blockKeys = tonumber(ARGV[2])
-- Nearly always nobody is blocked: one key then answers for the whole batch. A read, so that no eviction by use takes it.
if blockKeys < 0 then
  if tryCall('GET', KEYS[1]) then return '' end
end
local anyBlocked = blockKeys > 0 and call('EXISTS', unpack(KEYS, 1, blockKeys)) > 0

local a, block, cell = 4, 1, max(blockKeys, -blockKeys)
for _ = 1, tonumber(ARGV[3]) do
  local identities, cells = tonumber(ARGV[a]), tonumber(ARGV[a + 1])
  a = a + 2
  local at, takesPlaces = 1, false
  for c = 1, cells do
    local k, params = tonumber(ARGV[a]), tonumber(ARGV[a + 1])
    kernel[c], first[c], last[c] = k, at, params - 1
    for i = 0, params - 1 do N[at + i] = tonumber(ARGV[a + 2 + i]) end
    at = at + params
    a = a + 2 + params
    if prepare[k] then prepare[k](c) end
    if cells == 1 then open[k](c) end
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
          open[k](c)
          look[k](key, 0)
          if op == REFUND then
            giveBack[k](key, costs[c], tonumber(ARGV[a]), chargedAt, lease)
            a = a + 1
          elseif k == CONCURRENCY then
            if op == RELEASE then
              giveBack[k](key, costs[c], 0, 0, lease)
            else
              renew[k](key, costs[c], lease)
            end
          end
          report[k](key, 0, ADMITTED)
        end
      end
      if ends then
        n = n + 1
        out[n] = packBytes('>BI7I2', BLOCKED, tonumber(ends) - now, #reason) .. reason
      elseif op < REFUND then
        local allowed, possible = true, true
        for c = 1, cells do
          local k = kernel[c]
--- @when several
          if cells > 1 then open[k](c) end
--- @end
          local wait = look[k](KEYS[cell + c], needs[c])
          if wait ~= 0 then allowed = false end
          if wait < 0 then possible = false end
--- @when several
          if cells > 1 then keep[k](c) end
--- @end
        end
        local charged = op ~= PEEK and (allowed or (op == CHARGE and possible))
        for c = 1, cells do
          local key, k, cost = KEYS[cell + c], kernel[c], costs[c]
--- @when several
          if cells > 1 then
            open[k](c)
            recall[k](c)
          end
--- @end
          if charged then
            -- A refused request is not in flight: nobody would free the place it took.
            if cost > 0 and (allowed or k ~= CONCURRENCY) then take[k](key, cost, lease) end
          elseif op == CONSUME then
            heal[k](key)
          end
          report[k](key, needs[c], allowed and ADMITTED or REFUSED)
        end
      end
      block = block + identities
      cell = cell + cells
    end
  end
end

return concat(out)
