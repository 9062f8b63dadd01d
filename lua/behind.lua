--- Decides one request behind those that wait before it in other processes. The store puts `decide.lua`, or a script made of
-- it, in the place of DECISION.
-- KEYS   those of that script; then the record of the waiters of each cell, see shared/turns.lua
-- ARGV   those of that script for one decision; then: which of KEYS is the first record; where in ARGV the op stands;
--        that op as a peek; the process, '' for a request that does not wait;
--        if it waits: in the queue of which record, counted from 1, 0 for one of another slot; its class; for how long that
--        waits, head start included; for how many ms it is believed; the marker of waiters, '' in a cluster; who will wait in
--        that queue if it is refused, and who if it is admitted: see shared/turns.lua;
--        last of all where in ARGV all this begins.
-- Returns what the script does; then for how many ms more a waiter before it is believed, 0 for none (2 bytes), and whether
-- any waits (1).
--- @include "shared/turns"

local function decide()
  return DECISION
end

local firstArg = tonumber(ARGV[#ARGV])
local firstRecord, opAt, peek, process = tonumber(ARGV[firstArg]), tonumber(ARGV[firstArg + 1]), ARGV[firstArg + 2], ARGV[firstArg + 3]
local own, class, aheadMs, ttlMs = 0, 0, 0, 0
if process ~= '' then
  own, class, aheadMs, ttlMs = tonumber(ARGV[firstArg + 4]), tonumber(ARGV[firstArg + 5]), ARGV[firstArg + 6], ARGV[firstArg + 7]
end
local isPeek = ARGV[opAt] == peek
local since = turnsNow - aheadMs

local behindMs, anyWaits = 0, false
local queueOthers, queueLatest = '', turnsNow
for k = firstRecord, #KEYS do
  local others, latest = turns_others(KEYS[k], process)
  if others ~= '' then anyWaits = true end
  if k - firstRecord + 1 == own then queueOthers, queueLatest = others, latest end
  for at = 1, #others, ENTRY do
    local otherClass, otherSince, ends = struct.unpack('>ddI6', others, at + 12)
    -- Of one class the first to ask is served, in whichever process. One that does not wait comes after all who do.
    if process == '' or (otherClass ~= class and otherSince < since) then
      behindMs = math.max(behindMs, ends - turnsNow)
    end
  end
end

if behindMs > 0 then ARGV[opAt] = peek end
local reply = decide()

if own > 0 and not isPeek then
  -- The first byte of the decision: 1 where it was admitted, and 4 more where a refund record follows.
  local outcome = string.byte(reply, 7)
  local list = firstArg + 9
  if behindMs == 0 and (outcome == 1 or outcome == 5) then list = list + 1 + 2 * ARGV[list] end
  if turns_write(KEYS[firstRecord + own - 1], process, ttlMs, ARGV[firstArg + 8], list, queueOthers, queueLatest) then anyWaits = true end
end
return reply .. struct.pack('>I2B', math.min(behindMs, 65535), anyWaits and 1 or 0)
