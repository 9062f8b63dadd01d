--- Decides a batch of charges, each all or none, in one run.
--
-- KEYS   the block keys of every decision, or instead of all of them the marker that any block sets;
--        then the cell keys of every decision, in decision order.
--        Or none: then the same keys, of any slots of a cluster, stand at the end of ARGV, which the server does not look at.
-- ARGV   1 the time in ms, or '' for Redis's own
--        2 how many KEYS are block keys; -1 where the marker stands for them
--        3 how many plans follow; for each plan:
--          how many identities, how many cells; for each cell: kernel, in scripts with the part `joint` 0 where it is alone under
--          its key, 1 where it is the first of several under one key, 2 where it is under the key of the cell before it;
--          number of params, params;
--          in scripts with the part `bans`: how many terms of a ban follow, 0 for none; these are the cell whose identity is
--          banned, how many bytes its key has from the end of the hash tag on, what its keys of the ban have there, the
--          marker that blocks set ('' in a cluster), and what strikes.lua lists;
--          how many runs follow; for each run of decisions that are alike:
--            op, how many decisions, and per cell its cost;
--            if op is TOGETHER more: these are decisions on one and the same key, which is in KEYS once;
--            if op is RESERVING more than an op: per cell the units that must have room;
--            if the plan takes permits: per decision their id;
--            if op is STRIKING more than any of these, a refusal is a strike: per decision by how many ms a ban that starts
--            is longer;
--            in scripts with the part `turns`, of decisions: the process, '' for a request that does not wait; if it waits: in the
--            queue of which cell, counted from 1, 0 for one of another slot; its class; for how long that waits, head start
--            included; for how many ms it is believed; who will wait in that queue if it is refused, and who if it is
--            admitted: see shared/turns.lua;
--            if op is REFUND: when it was charged, and per cell the receipt and, for buckets, what had been refunded
--            before (such a run is one decision).
--        Where KEYS is empty: all keys, and last of all the index of the first; only what decides, no refunds or releases.
--        In scripts with the part `turns`, last of all: from which of KEYS on there are records of waiters, one for each cell of
--        each decision; the marker of waiters, '' in a cluster.
-- A part between `@when` and `@end` is left out of scripts that do not need it, by kernel, where no plan has several
-- cells (`several`), where none shares a key (`joint`), where no refusal is a strike (`bans`), where none looks for waiters (`turns`), where nothing is refunded or renewed (`refund`), and where nothing
-- of one key is decided at once (`together`): Redis makes every function and table anew on every run. And of batches whose plans have one cell each, all of one kind, the build makes scripts that run straight on.
-- Returns one string: the time in ms (6 bytes), then for each decision and each of its cells whether the decision
-- was admitted (1 byte: 0 or 1) and what the cell says, as its `report` writes it. Mostly that is its state: what
-- follows from a state, the store works out by the same kernels, and not here, where all other clients of Redis wait for it. With 4
-- added to that byte, there comes after it what a bucket has refunded (7), of charges from when on (6).
-- Decisions that were made together are the byte 8, how many they are (2), how many of them, the first, were admitted (2);
-- then, if any were, what the cell says after the last of these, and if any were not, what it says to those.
-- A blocked decision is the byte 2, the ms until the block ends (7), the length of the reason (2), the reason. One that has
-- started a ban is the byte 16, and the same.
-- A decision of which a key is on another node, or in a slot that moves and not here, is the byte 3; it charges nothing.
-- In scripts with the part `turns` there comes behind each decision for how many ms more a waiter before it is believed, 0 for none
-- (2 bytes); and 2 where any waits for one of its cells, 1 where none does, 0 where none waits for anything (1). Where there is a
-- waiter before it, it is decided as a peek.
-- With the marker of blocks there, nothing is decided, and the string is empty.

local ARGV, KEYS = ARGV, KEYS
--- @include "shared/names"

--- A number of ARGV: what is computed with becomes one, at less than a call costs.
local function number(i)
  return ARGV[i] + 0
end

--- @include "shared/reads"

local clock = ARGV[1]
--- @include "shared/now"

-- What is replied: its start as a text, and all after the first piece in a table, which a decision alone does without.
local reply, more, pieces = packBytes('>I6', now), nil, 0

local function say(piece)
  if pieces == 0 then
    reply = reply .. piece
  else
    more = more or {}
    more[pieces] = piece
  end
  pieces = pieces + 1
end

-- The plan at hand: the kind of cell c; its params are in ARGV, from first[c] to last[c], as numbers.
local kernel, first, last = {}, {}, {}
--- @when joint
-- Of cell c: which of the decision's keys it is under; the first of the cells that share that key, 0 where none does.
local keyIndex, head = {}, {}
--- @end
-- The run at hand: what cell c is charged, and what must have room in it.
local costs, needs = {}, {}

--- @include "shared/kinds"
--- @when bans
-- Bans that started in this run, by what their keys begin with: later decisions of it are refused by these, without block keys.
local begun
--- @include "strikes"
--- @end
--- @when turns
local turnsNow = now
if clock ~= '' then
  local time = call('TIME')
  turnsNow = time[1] * 1000 + floor(time[2] / 1000)
end
--- @include "shared/turns"

--- Who waits for the cells of a decision: for how many ms more one before it is believed, 0 for none; whether any does; of its
-- own queue what other processes tell, and until when the last of that is believed.
local function turns_before(from, to, own, process, class, since)
  local behindMs, anyWaits, queueOthers, queueLatest = 0, false, '', turnsNow
  for k = from, to do
    local others, latest = turns_others(KEYS[k], process)
    if others ~= '' then anyWaits = true end
    if k == own then queueOthers, queueLatest = others, latest end
    for at = 1, #others, ENTRY do
      local otherClass, otherSince, ends = unpackBytes('>ddI6', others, at + 12)
      -- Of one class the first to ask is served, in whichever process. One that does not wait comes after all who do.
      if process == '' or (otherClass ~= class and otherSince < since) then behindMs = max(behindMs, ends - turnsNow) end
    end
  end
  return behindMs, anyWaits, queueOthers, queueLatest
end

-- Nearly always no request waits for anything: one key then answers for all records. Else one command asks for all of them.
local waitingMarker, record = ARGV[#ARGV], number(#ARGV - 1)
local isMarked, anyRecord = waitingMarker == '' or call('EXISTS', waitingMarker) > 0, false
if isMarked then
  -- Lua can hand no more than some thousand keys to one command.
  for k = record, #KEYS, 1000 do
    if call('EXISTS', unpack(KEYS, k, min(k + 999, #KEYS))) > 0 then anyRecord = true end
  end
end
--- @end

local blockKeys = number(2)
local a, block, cell = 4, 1, max(blockKeys, -blockKeys)
-- Nearly always no identity is blocked: one key then answers for the whole batch. A read, so that no eviction by use takes it.
if blockKeys < 0 then
  if tryCall('GET', KEYS[1]) then return '' end
end
local anyBlocked = blockKeys > 0
if #KEYS == 0 then
  KEYS, block = ARGV, number(#ARGV)
  cell = block - 1 + blockKeys
elseif anyBlocked then
  anyBlocked = call('EXISTS', unpack(KEYS, 1, blockKeys)) > 0
end

for _ = 1, number(3) do
  local identities, cells = number(a), number(a + 1)
  a = a + 2
  local takesPermits = false
--- @when joint
  local keys = 0
--- @end
  for c = 1, cells do
    local kind = number(a)
--- @when joint
    a = a + 1
    local sharing = number(a)
    if sharing < 2 then
      keys = keys + 1
      head[c] = sharing * c
    else
      head[c] = head[c - 1]
    end
    keyIndex[c] = keys
--- @end
    local params = number(a + 1)
    kernel[c], first[c], last[c] = kind, a + 2, a + 1 + params
    a = a + 2 + params
    for p = first[c], last[c] do ARGV[p] = number(p) end
    if prepare[kind] then prepare[kind](c) end
--- @when joint
    if head[c] > 0 then joint_prepare(c, head[c], size[kind](c)) end
--- @end
    if cells == 1 then open[kind](c) end
    if hasPermits(kind) then takesPermits = true end
  end

--- @when joint
  head[cells + 1] = 0
--- @end
--- @when bans
  local terms = number(a)
  local ban = a + 1
  a = ban + terms
--- @end
  local runs = number(a)
  a = a + 1
  for _ = 1, runs do
    local op, decisions = number(a), number(a + 1)
--- @when bans
    local isStriking = op >= STRIKING
    if isStriking then op = op - STRIKING end
--- @end
--- @when together
    -- Of decisions that are equal, on one key and at one instant, the first are admitted, as many as have room. So they are
    -- one: the key is looked at once, and what all of them take is taken at once. Plans of one cell alone.
    local equals = 1
    if op >= TOGETHER then op, equals, decisions = op - TOGETHER, decisions, 1 end
--- @end
    for c = 1, cells do
      costs[c] = number(a + 1 + c)
      needs[c] = costs[c]
    end
    a = a + 2 + cells
    if op >= RESERVING then
      op = op - RESERVING
      for c = 1, cells do needs[c] = number(a - 1 + c) end
      a = a + cells
    end
--- @when turns
    local asked = op
--- @end
    for _ = 1, decisions do
      local permitId
      if takesPermits then
        permitId = ARGV[a]
        a = a + 1
      end
--- @when bans
      local jitter = a
      if isStriking then a = a + 1 end
--- @end
--- @when turns
      op = asked
      local behindMs, anyWaits, isAdmitted = 0, false, false
      -- The queue that it waits in, from 1, what others tell of that, and where its own is told.
      local own, queueOthers, queueLatest, tellsAt = 0, '', 0, 0
      local process, ttlMs = '', 0
      if op <= CHARGE then
        process = ARGV[a]
        local class, since = 0, 0
        a = a + 1
        if process ~= '' then
          own, class, since, ttlMs = number(a), number(a + 1), turnsNow - number(a + 2), number(a + 3)
          tellsAt = a + 4
          a = tellsAt + 1 + 2 * number(tellsAt)
          a = a + 1 + 2 * number(a)
        end
        if anyRecord or process ~= '' then
          behindMs, anyWaits, queueOthers, queueLatest =
            turns_before(record, record + cells - 1, record + own - 1, process, class, since)
        end
        if behindMs > 0 then op = PEEK end
      end
--- @end
      -- Of the blocks and bans that hold, the one that ends last.
      local ends, reason = 0, ''
      elsewhere = false
      if anyBlocked and op <= CHARGE then
        for b = block, block + identities - 1 do
          local value = tryCall('GET', KEYS[b])
          requireRead(value)
          if type(value) == 'string' then
            local last, said = string.match(value, '^(%d+) (.*)$')
            if last and tonumber(last) > max(now, ends) then ends, reason = tonumber(last), said end
          end
        end
      end

--- @when bans
      if begun and terms > 0 and op <= CHARGE then
        local base = strikes_base(KEYS[cell + number(ban)], number(ban + 1), ARGV[ban + 2])
        if begun[base] and begun[base][1] > ends then ends, reason = begun[base][1], begun[base][2] end
      end
--- @end

--- @when refund
      if op >= REFUND then
        local chargedAt = 0
        if op == REFUND then
          chargedAt = number(a)
          a = a + 1
        end
        for c = 1, cells do
          local key, kind = KEYS[cell + c], kernel[c]
--- @when joint
          key, joint, mine = KEYS[cell + keyIndex[c]], head[c], c
          if joint == c then joint_read(key) end
          if joint > 0 then joint_begin() end
--- @end
          open[kind](c)
          look[kind](key, 0)
          if op == REFUND then
            refund[kind](key, costs[c], number(a), chargedAt, permitId, number(a + 1))
            a = a + 2
          elseif hasPermits(kind) then
            if op == RELEASE then
              refund[kind](key, costs[c], 0, 0, permitId)
            else
              renew[kind](key, costs[c], permitId)
            end
          end
          report[kind](key, 0, ADMITTED)
--- @when joint
          if joint > 0 and head[c + 1] ~= joint then joint_write(key) end
--- @end
        end
      end
--- @end
      if ends > 0 then
--- @when together
        if equals > 1 then say(packBytes('>BI2I2', EQUALS, equals, 0)) end
--- @end
        say(packBytes('>BI7I2', BLOCKED, ends - now, #reason) .. reason)
      elseif op < REFUND then
        local allowed, possible = true, true
--- @when together
        local admitted = 1
--- @end
        for c = 1, cells do
          local kind = kernel[c]
--- @when several
          if cells > 1 then open[kind](c) end
--- @end
          local key = KEYS[cell + c]
--- @when joint
          key, joint, mine = KEYS[cell + keyIndex[c]], head[c], c
          if joint == c then joint_read(key) end
--- @end
          local wait = look[kind](key, needs[c])
          if wait ~= 0 or elsewhere then allowed = false end
          if wait < 0 then possible = false end
--- @when together
          if equals > 1 then
            admitted = allowed and equals or 0
            if allowed and costs[c] > 0 then
              local units = room[kind]()
              admitted = min(equals, floor((units - needs[c]) / costs[c]) + 1)
            end
            say(packBytes('>BI2I2', EQUALS, equals, admitted))
          end
--- @end
--- @when several
          if cells > 1 then keep[kind](c) end
--- @end
        end
--- @when turns
        isAdmitted = allowed and behindMs == 0
        -- No limit has refused it: it is no strike.
        if behindMs > 0 then possible = false end
--- @end
        if elsewhere then
          say(packBytes('B', ELSEWHERE))
        else
--- @when bans
          local banEnds, banReason = 0, ''
          if isStriking and not allowed and possible then
            local base = strikes_base(KEYS[cell + number(ban)], number(ban + 1), ARGV[ban + 2])
            banEnds, banReason = strikes_strike(base, ARGV[ban + 3], 1, number(jitter), '', ban + 4, ban + terms - 1)
            if banEnds > 0 then
              begun = begun or {}
              begun[base] = { banEnds, banReason }
            end
          end
--- @end
          local charged = op ~= PEEK and (allowed or (op == CHARGE and possible))
          for c = 1, cells do
            local key, kind, cost = KEYS[cell + c], kernel[c], costs[c]
--- @when joint
            key, joint, mine = KEYS[cell + keyIndex[c]], head[c], c
            if joint > 0 then joint_begin() end
--- @end
--- @when together
            cost = cost * admitted
--- @end
--- @when several
            if cells > 1 then
              open[kind](c)
              recall[kind](c)
            end
--- @end
            if charged then
              -- A refused request is not in flight: the permit that it took would never be released.
              if cost > 0 and (allowed or not hasPermits(kind)) then take[kind](key, cost, permitId) end
            elseif op == CONSUME then
              heal[kind](key)
            end
--- @when joint
            if joint > 0 and head[c + 1] ~= joint then joint_write(key) end
--- @end
            local outcome = allowed and ADMITTED or REFUSED
--- @when bans
            if banEnds == 0 then
--- @end
--- @when together
            for outcome = outcome, admitted < equals and REFUSED or outcome, -1 do
--- @end
            report[kind](key, needs[c], outcome)
--- @when together
            end
--- @end
--- @when bans
            end
--- @end
          end
--- @when bans
          if banEnds > 0 then say(packBytes('>BI7I2', BEGUN, banEnds - now, #banReason) .. banReason) end
--- @end
        end
      end
--- @when turns
      if asked <= CHARGE then
        if own > 0 and asked ~= PEEK then
          if isAdmitted then tellsAt = tellsAt + 1 + 2 * number(tellsAt) end
          if turns_write(KEYS[record + own - 1], process, ttlMs, waitingMarker, tellsAt, queueOthers, queueLatest) then
            anyWaits, isMarked, anyRecord = true, true, true
          end
        end
        local waits = isMarked and 1 or 0
        if anyWaits then waits = 2 end
        say(packBytes('>I2B', min(behindMs, 65535), waits))
        record = record + cells
      end
--- @end
      block = block + identities
--- @when joint
      cell = cell + keys - cells
--- @end
      cell = cell + cells
    end
  end
end

if more then return reply .. concat(more) end
return reply
