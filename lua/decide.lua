--- Decides a batch of charges, each all or none, in one run.
--
-- KEYS   the block keys of every decision, then the cell keys of every decision, in decision order.
-- ARGV   1 the time in ms, or '' for Redis's own
--        2 how many KEYS are block keys
--        3 how many plans follow; for each plan:
--          how many identities, how many cells; for each cell: kernel, number of params, params;
--          how many runs follow; for each run of decisions that are alike:
--            op, how many decisions, and per cell its cost;
--            if the plan takes places: per decision the name of its lease;
--            if op is REFUND: when it was charged, and per cell the receipt (such a run is one decision).
-- Returns a flat array: the time in ms; then for each decision and each limit: remaining units, ms until
-- the same cost would be admitted (0 now, -1 never), ms until the limit is as good as new, the receipt.
-- A blocked decision has -1 for its first remaining, then the ms until the block ends, then the index
-- at which the reason stands, after all decisions.

local call, floor, ceil, max, min = redis.call, math.floor, math.ceil, math.max, math.min
local packBytes, unpackBytes = struct.pack, struct.unpack
local sub, rep, format = string.sub, string.rep, string.format

local CONSUME, PEEK, CHARGE, REFUND, RELEASE, RENEW = 0, 1, 2, 3, 4, 5
local BUCKET, LOG, SEGMENTS, COUNTER, CONCURRENCY = 1, 2, 3, 4, 5

local now, slack = tonumber(ARGV[1]), 0
if now then
  -- Redis expires keys by its own clock; by another one a state must not end early.
  slack = 3600000
else
  local time = call('TIME')
  now = time[1] * 1000 + floor(time[2] / 1000)
end

local out, n = { now }, 1
-- The numbers of the plan at hand: cell c has its params from N[first[c]] on, and last[c] is the offset of its last.
local N, first, last, kernel = {}, {}, {}, {}
-- What looking at cell c found, until the next decision.
local S1, S2, S3, S4, S5, S6, W, F = {}, {}, {}, {}, {}, {}, {}, {}

--- @include "cells/bucket"
--- @include "cells/log"
--- @include "cells/segments"
--- @include "cells/counter"
--- @include "cells/concurrency"

local function look(c, key, cost)
  local k = kernel[c]
  if k == BUCKET then return bucket_look(c, key, cost) end
  if k == LOG then return log_look(c, key, cost) end
  if k == SEGMENTS then return segments_look(c, key, cost) end
  if k == COUNTER then return counter_look(c, key, cost) end
  return concurrency_look(c, key, cost)
end

local function take(c, key, cost, lease)
  local k = kernel[c]
  if k == BUCKET then return bucket_take(c, key, cost) end
  if k == LOG then return log_take(c, key, cost) end
  if k == SEGMENTS then return segments_take(c, key, cost) end
  if k == COUNTER then return counter_take(c, key, cost) end
  return concurrency_take(c, key, cost, lease)
end

local function heal(c, key)
  local k = kernel[c]
  if k == BUCKET then return bucket_heal(c, key) end
  if k == LOG then return log_heal(c, key) end
  if k == SEGMENTS then return segments_heal(c, key) end
  if k == COUNTER then return counter_heal(c, key) end
  return concurrency_heal(c, key)
end

local function report(c, key, cost, admitted)
  local k = kernel[c]
  if k == BUCKET then return bucket_report(c, cost, admitted) end
  if k == LOG then return log_report(c, cost, admitted) end
  if k == SEGMENTS then return segments_report(c, cost, admitted) end
  if k == COUNTER then return counter_report(c, cost, admitted) end
  return concurrency_report(c, key, cost, admitted)
end

local function giveBack(c, key, cost, lease, receipt, chargedAt)
  local k = kernel[c]
  if k == BUCKET then return bucket_giveBack(c, key, cost, receipt, chargedAt) end
  if k == LOG then return log_giveBack(c, key, cost, receipt) end
  if k == SEGMENTS then return segments_giveBack(c, key, cost, receipt) end
  if k == COUNTER then return counter_giveBack(c, key, cost, receipt) end
  return concurrency_giveBack(c, key, cost, lease)
end

local blockKeys = tonumber(ARGV[2])
-- Nearly always nothing is blocked: one command then answers for the whole batch.
local anyBlocked = blockKeys > 0 and call('EXISTS', unpack(KEYS, 1, blockKeys)) > 0
local reasons = {}

--- The first block among `count` keys from `from` on: when it ends, and why. The value is "end reason".
local function blockAmong(from, count)
  for b = from, from + count - 1 do
    local ends, reason = string.match(call('GET', KEYS[b]) or '', '^(%d+) (.*)$')
    if ends and tonumber(ends) > now then return tonumber(ends), reason end
  end
end

local a, block, cell = 4, 1, blockKeys
for _ = 1, tonumber(ARGV[3]) do
  local identities, cells = tonumber(ARGV[a]), tonumber(ARGV[a + 1])
  a = a + 2
  local at, limits, takesPlaces = 1, 0, false
  for c = 1, cells do
    local k, params = tonumber(ARGV[a]), tonumber(ARGV[a + 1])
    kernel[c], first[c], last[c] = k, at, params - 1
    for i = 0, params - 1 do N[at + i] = tonumber(ARGV[a + 2 + i]) end
    at = at + params
    a = a + 2 + params
    limits = limits + (k == LOG and (params - 2) / 2 or 1)
    if k == SEGMENTS then segments_prepare(c) end
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
    for _ = 1, decisions do
      local lease
      if takesPlaces then
        lease = ARGV[a]
        a = a + 1
      end
      local ends, reason
      if anyBlocked and op <= CHARGE then ends, reason = blockAmong(block, identities) end

      if op >= REFUND then
        local chargedAt = 0
        if op == REFUND then
          chargedAt = tonumber(ARGV[a])
          a = a + 1
        end
        for c = 1, cells do
          local key = KEYS[cell + c]
          look(c, key, 0)
          if op == REFUND then
            giveBack(c, key, costs[c], lease, tonumber(ARGV[a]), chargedAt)
            a = a + 1
          elseif kernel[c] == CONCURRENCY then
            if op == RELEASE then
              concurrency_giveBack(c, key, costs[c], lease)
            else
              concurrency_renew(c, key, costs[c], lease)
            end
          end
          report(c, key, 0, true)
        end
      elseif ends then
        reasons[#reasons + 1] = { n + 3, reason }
        out[n + 1], out[n + 2] = -1, ends - now
        for i = 3, limits * 4 do out[n + i] = 0 end
        n = n + limits * 4
      else
        local allowed, possible = true, true
        for c = 1, cells do
          local wait = look(c, KEYS[cell + c], costs[c])
          if wait ~= 0 then allowed = false end
          if wait < 0 then possible = false end
        end
        local charged = op ~= PEEK and (allowed or (op == CHARGE and possible))
        for c = 1, cells do
          local key = KEYS[cell + c]
          if charged then
            if costs[c] > 0 then take(c, key, costs[c], lease) end
          elseif op == CONSUME then
            heal(c, key)
          end
          report(c, key, costs[c], allowed)
        end
      end
      block = block + identities
      cell = cell + cells
    end
  end
end

for i, reason in ipairs(reasons) do
  out[reason[1]] = n + i - 1
  out[n + i] = reason[2]
end
return out
