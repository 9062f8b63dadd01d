--- Decides a batch of charges, each all or none, in one run.
--
-- KEYS
--   blocks        the marker that every block sets, or instead of it the block keys of every decision
--   cells         the cell keys of every decision, in decision order. One key for a run with TOGETHER
--   strikes       in scripts with the part `bans`: keys that the script derives, declared for the server or a proxy
--   charges       in scripts with the part `charges`: the keys of each kept charge
--   records       in scripts with the part `turns`: of waiters, one for each cell of each decision
-- Without KEYS, the blocks and cells are at the end of ARGV, of any slots of a cluster: the server does not check them
-- there. This is for decisions, not for refunds or releases.
--
-- ARGV
--   clock         the time in ms, or '' for Redis's own
--   blockKeys     the number of block keys in KEYS; -1 if the marker replaces them
--   plans         their number; for each plan:
--     identities    their number
--     cells         their number; for each cell:
--       kind          the number of its kernel
--       sharing       `joint`: 0 if it is alone under its key, 1 if it is the first of several, 2 if it shares the key
--                     of the cell before it
--       params        their number, then each
--     terms         `bans`: the number of terms of a ban, 0 for none:
--       cell          whose identity is banned
--       bytes         of its key from the end of the hash tag on
--       scope         the text there in keys of the ban
--       marker        that blocks set, '' in a cluster
--       ladder        the list of strikes.lua
--     runs          their number; for each run of similar decisions:
--       op            with a flag added for each of what follows
--       decisions     their number. With TOGETHER, all are on one key
--       costs         of each cell
--       needs         RESERVING: of each cell the units that must have room
--       for each decision, or once for a run with TOGETHER:
--         permit        if the plan takes permits: their id
--         jitter        STRIKING: in ms, of a ban that starts
--         turn          `turns`, for decisions:
--           process       '' for a request that is not waiting; otherwise:
--           queue         the cell that it waits for, counted from 1; 0 for a cell of another slot
--           class
--           ahead         how long the class has waited, including the head start
--           ttl           for how many ms the report is trusted
--           ifRefused     the waiters of that queue: see shared/turns.lua
--           ifAdmitted    the same
--         charge        KEEPING: the charge to keep, or the kept one to change: see shared/charges.lua
--         receipts      REFUND, for one decision: the instant of the charge; for each cell the receipt, and for buckets
--                       the count of refunds at that time
--   first         without KEYS, after all keys: the index of the first one
--   record        `turns`: the index in KEYS of the first record
--   waiting       `turns`: the marker of waiters, '' in a cluster
--
-- Returns one string, or MAY_BE_BLOCKED if the marker of blocks exists: then nothing is decided.
--   now           the time in ms (6 bytes)
--   for each decision, by its first byte:
--     REFUSED, ADMITTED   then the report of the first cell, usually its state. For each further cell, the same byte
--                         and its report. With REFUNDS added, the report is followed by the sum of a bucket's refunds
--                         (7) and the instant from which charges are included (6)
--     EQUALS              decisions that were made together: their number (2); the number of admitted ones, which come
--                         first (2); if any were admitted, the cell's report after the last of these; if any were
--                         refused, the report for those
--     BLOCKED             the ms until the block ends (7); the length of the reason (2); the reason
--     BEGUN               the decision has started a ban: the same
--     ELSEWHERE           a key is on another node, or in a migrating slot and not here. It charges nothing
--   after each change of a kept charge: its outcome (1), see shared/charges.lua
--   after each decision, in scripts with the part `turns`: the remaining ms for which a waiter before it is trusted, 0
--                 for none (2); and 2 if any request waits for one of its cells, 1 if none does, 0 if none waits for any
--                 cell (1). With a waiter before it, it is decided as a peek
-- The store derives the results from the states by the same kernels, as all other clients of Redis would wait for it here.
--
-- The build and the store omit parts between `@when` and `@end` that a script does not need: kernels of other kinds, and
-- these. Redis creates every function and table again on every run. For batches whose plans have one cell each, all of
-- one kind, the build makes scripts without loops over cells.
--   several       several cells for each plan
--   joint         cells that share a key
--   bans          refusals that are strikes
--   turns         decisions that check for waiters
--   charges       kept charges
--   refund        refunds, releases and renewals
--   debit         charges whatever room there is
--   together      decisions on one key that are made together

local ARGV, KEYS = ARGV, KEYS
--- @include "shared/names"

--- A number in ARGV. Arithmetic converts it, at a lower cost than a call.
local function number(i)
  return ARGV[i] + 0
end

--- @include "shared/reads"

local clock = ARGV[1]
--- @include "shared/now"

-- The reply: its start as a text, and all pieces after the first one in a table, which a single decision does not
-- need.
local reply, more, pieces = packBytes('>I6', now), nil, 0

--- @when charges
-- The reply to the current decision.
local said = ''
--- @end

local function say(piece)
--- @when charges
  said = said .. piece
--- @end
  if pieces == 0 then
    reply = reply .. piece
  else
    more = more or {}
    more[pieces] = piece
  end
  pieces = pieces + 1
end

-- The current plan: the kind of cell c; its params are in ARGV, from first[c] to last[c], as numbers.
local kernel, first, last = {}, {}, {}
--- @when joint
-- By cell: the index of its key among the decision's keys; the first of the cells that share that key, 0 if none does.
local keyIndex, head = {}, {}
--- @end
-- The current run: the cost of cell c, and the units that must have room in it.
local costs, needs = {}, {}

--- @include "shared/kinds"
--- @when bans
-- Bans that started in this script, by the start of their keys: they refuse its later decisions, without block keys.
local begun
--- @include "strikes"
--- @end
--- @when charges
--- @include "shared/charges"
--- @end
--- @when turns
local turnsNow = now
if clock ~= '' then
  local time = call('TIME')
  turnsNow = time[1] * 1000 + floor(time[2] / 1000)
end
--- @include "shared/turns"

--- Finds waiters for the cells of a decision. Returns the remaining ms for which one before it is trusted, 0 for none;
-- whether any waits; and for its own queue the entries of other processes, and until when the last of them is trusted.
local function turns_before(from, to, queue, process, class, since)
  local behindMs, anyWaits, queueOthers, queueLatest = 0, false, '', turnsNow
  for k = from, to do
    local others, latest = turns_others(KEYS[k], process)
    if others ~= '' then anyWaits = true end
    if k == queue then queueOthers, queueLatest = others, latest end
    for at = 1, #others, ENTRY do
      local otherClass, otherSince, ends = struct.unpack('>ddI6', others, at + 12)
      -- Within a class, the first request is served, in whichever process. A request that is not waiting comes after
      -- all waiters.
      if process == '' or (otherClass ~= class and otherSince < since) then behindMs = max(behindMs, ends - turnsNow) end
    end
  end
  return behindMs, anyWaits, queueOthers, queueLatest
end

-- Nearly always, no request waits, and one key stands for all records. Otherwise, one command checks all of them.
local waitingMarker, record = ARGV[#ARGV], number(#ARGV - 1)
local isMarked, anyRecord = waitingMarker == '' or call('EXISTS', waitingMarker) > 0, false
if isMarked then
  -- Lua can pass at most a few thousand keys to one command.
  for k = record, #KEYS, 1000 do
    if call('EXISTS', unpack(KEYS, k, min(k + 999, #KEYS))) > 0 then anyRecord = true end
  end
end
--- @end

local blockKeys = number(2)
local a, block, cell = 4, 1, max(blockKeys, -blockKeys)
-- Nearly always, no identity is blocked, and one key stands for the whole batch. It is read, so that no eviction by
-- use removes it.
if blockKeys < 0 then
  if tryCall('GET', KEYS[1]) then return MAY_BE_BLOCKED end
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
--- @when turns
  -- In scripts for one kind of cell, the number of cells may be known, and these parts must not depend on it.
  local records = number(a - 1)
--- @end
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
--- @when charges
    local isKeeping = op >= KEEPING
    if isKeeping then op = op - KEEPING end
--- @end
--- @when bans
    local isStriking = op >= STRIKING
    if isStriking then op = op - STRIKING end
--- @end
--- @when together
    -- Of equal decisions on one key at one instant, the first are admitted, as many as have room. They are made
    -- together: the key is read once, and the units of all are charged at once. Only for plans of one cell.
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
--- @when charges
      said = ''
--- @end
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
      -- The cell of its queue, from 1, the entries of other processes, and the position of its own classes in ARGV.
      local queue, queueOthers, queueLatest, tellsAt = 0, '', 0, 0
      local process, ttlMs = '', 0
      if op <= CHARGE then
        process = ARGV[a]
        local class, since = 0, 0
        a = a + 1
        if process ~= '' then
          queue, class, since, ttlMs = number(a), number(a + 1), turnsNow - number(a + 2), number(a + 3)
          tellsAt = a + 4
          a = tellsAt + 1 + 2 * number(tellsAt)
          a = a + 1 + 2 * number(a)
        end
        if anyRecord or process ~= '' then
          behindMs, anyWaits, queueOthers, queueLatest =
            turns_before(record, record + records - 1, record + queue - 1, process, class, since)
        end
        if behindMs > 0 then op = PEEK end
      end
--- @end
--- @when charges
      local chargeAt = a
      if isKeeping then a = a + (op < REFUND and 5 or 3 + cells) end
--- @end
      -- The block or ban in force that ends last.
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
--- @when charges
        local outcome = DONE
        if isKeeping then outcome = charges_take(chargeAt, cells, op) end
--- @end
        for c = 1, cells do
          local key, kind, cost = KEYS[cell + c], kernel[c], costs[c]
--- @when charges
          if isKeeping and not taken[c] then cost = 0 end
--- @end
--- @when joint
          key, joint, mine = KEYS[cell + keyIndex[c]], head[c], c
          if joint == c then joint_read(key) end
          if joint > 0 then joint_begin() end
--- @end
          open[kind](c)
          look[kind](key, 0)
          if op == REFUND then
            if cost > 0 then refund[kind](key, cost, number(a), chargedAt, permitId, number(a + 1)) end
            a = a + 2
--- @when debit
          elseif op == DEBIT then
            if cost > 0 and not hasPermits(kind) then debit[kind](key, cost) end
--- @end
          elseif hasPermits(kind) then
            if op == RELEASE then
              refund[kind](key, cost, 0, 0, permitId)
            else
              local isHeld = renew[kind](key, cost, permitId)
--- @when charges
              if not isHeld then outcome = UNKNOWN end
--- @end
            end
          end
          report[kind](key, 0, ADMITTED)
--- @when joint
          if joint > 0 and head[c + 1] ~= joint then joint_write(key) end
--- @end
        end
--- @when charges
        if isKeeping then say(packBytes('B', outcome)) end
--- @end
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
        -- No limit has refused it, so it is not a strike.
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
--- @when charges
          if isKeeping and charged and allowed then charges_keep(chargeAt, cells, said) end
--- @end
--- @when bans
          if banEnds > 0 then say(packBytes('>BI7I2', BEGUN, banEnds - now, #banReason) .. banReason) end
--- @end
        end
      end
--- @when turns
      if asked <= CHARGE then
        if queue > 0 and asked ~= PEEK then
          if isAdmitted then tellsAt = tellsAt + 1 + 2 * number(tellsAt) end
          if turns_write(KEYS[record + queue - 1], process, ttlMs, waitingMarker, tellsAt, queueOthers, queueLatest) then
            anyWaits, isMarked, anyRecord = true, true, true
          end
        end
        local waits = isMarked and 1 or 0
        if anyWaits then waits = 2 end
        say(packBytes('>I2B', min(behindMs, 65535), waits))
        record = record + records
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
