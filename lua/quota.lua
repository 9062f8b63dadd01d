--- A learned quota of a service, and the requests to it that are in flight: see packages/fetch/src/learned/kernel.ts, its twin.
-- KEYS   1 the state
-- ARGV   1 the time in ms, or '' for Redis's own; 2 `take` or `told`
--   take   3 1 for an even pace, or 0
--   told   3 the slot and 4 the instant at which the request was taken; 5 its outcome; then of each limit its name, limit,
--          remaining units, ms until its reset, 1 for a bucket or 0
-- Returns: the time, its slot, the wait in ms, 1 for the first request or 0, the pause after it in µs, the number of requests
--   taken so far, that of limits known.
local call, floor, ceil, max, min = redis.call, math.floor, math.ceil, math.max, math.min
local format = string.format

local SLOT_MS, ALONE_MS, ROUNDED_MS, MAX_INTERVAL_US, EVEN_PART, ANSWER_MS = 30000, 1000, 1000, 60000000, 10, 50
local UNSENT, ANSWERED = 0, 2
local LEAST_LIFE_MS = 60000
-- The fields of a limit.
local LIMIT, REMAINING, RESET_AT, RESET_FROM, PER_UNIT_US, TOLD_AT, IS_BUCKET, NAME = 1, 2, 3, 4, 5, 6, 7, 8

local function number(i)
  return tonumber(ARGV[i])
end

local clock = ARGV[1]
--- @include "shared/now"

-- The state as text: six numbers, then of each limit seven and its name, which has no spaces.
local isKnown, aloneUntil, slot, newer, older, taken, limits = 0, 0, 0, 0, 0, 0, {}
local stored = redis.pcall('GET', KEYS[1])
if type(stored) == 'string' then
  local words = {}
  for word in string.gmatch(stored, '%S+') do words[#words + 1] = word end
  if words[1] == 'q1' and #words >= 7 and (#words - 7) % 8 == 0 then
    isKnown, aloneUntil, slot = tonumber(words[2]), tonumber(words[3]), tonumber(words[4])
    newer, older, taken = tonumber(words[5]), tonumber(words[6]), tonumber(words[7])
    for i = 8, #words, 8 do
      limits[#limits + 1] = {
        tonumber(words[i]), tonumber(words[i + 1]), tonumber(words[i + 2]), tonumber(words[i + 3]),
        tonumber(words[i + 4]), tonumber(words[i + 5]), words[i + 6] == '1', words[i + 7],
      }
    end
  end
end

--- Takes units that no response tells.
local function spend(units)
  for _, known in ipairs(limits) do known[REMAINING] = max(0, known[REMAINING] - units) end
end

local present = floor(now / SLOT_MS)
if present > slot then
  if present == slot + 1 then
    spend(older)
    older = newer
  else
    spend(older + newer)
    older = 0
  end
  newer, slot = 0, present
end

--- Units left, those in flight included.
local function leftOf(known)
  if not known[IS_BUCKET] then return known[REMAINING] end
  local most = max(known[LIMIT], known[REMAINING])
  if known[PER_UNIT_US] == 0 then return most end
  return min(most, known[REMAINING] + floor(max(0, now - known[TOLD_AT]) * 1000 / known[PER_UNIT_US]))
end

local function isOver(known)
  return not known[IS_BUCKET] and known[RESET_AT] <= now
end

local waitMs, isFirst, intervalUs = 0, isKnown == 0, 0

local function take(isEven)
  local inFlight = newer + older
  for _, known in ipairs(limits) do
    if isOver(known) then
      isFirst = true
    else
      local left = leftOf(known)
      if left - inFlight < 1 then
        local wait = known[RESET_AT] - now
        if known[IS_BUCKET] then
          wait = ANSWER_MS
          if known[PER_UNIT_US] > 0 then wait = ceil((1 - left + inFlight) * known[PER_UNIT_US] / 1000) end
        end
        waitMs = max(waitMs, wait)
      elseif isEven or left * EVEN_PART <= known[LIMIT] then
        local interval
        if known[IS_BUCKET] then
          interval = floor(known[PER_UNIT_US] * known[LIMIT] / max(1, known[LIMIT] + left))
        else
          interval = floor((known[RESET_AT] - now) * 1000 / left)
        end
        intervalUs = max(intervalUs, interval)
      end
    end
  end
  intervalUs = min(MAX_INTERVAL_US, intervalUs)
  if waitMs == 0 and isFirst then waitMs = max(0, aloneUntil - now) end
  if waitMs > 0 then return end
  if isFirst then aloneUntil = now + ALONE_MS end
  newer, taken = newer + 1, taken + 1
end

local function knownOf(name, limit, remaining, resetAfterMs, isBucket, takenAt)
  local perUnitUs = 0
  if isBucket and limit > remaining then perUnitUs = ceil(resetAfterMs * 1000 / (limit - remaining)) end
  local resetAt, resetFrom = now + resetAfterMs, takenAt + max(0, resetAfterMs - ROUNDED_MS)
  for _, before in ipairs(limits) do
    if before[NAME] == name and before[TOLD_AT] >= takenAt and before[IS_BUCKET] == isBucket then
      if not isBucket and resetAt < before[RESET_FROM] then return before end
      if isBucket or resetFrom <= before[RESET_AT] then
        remaining = min(leftOf(before), remaining)
        resetAt, resetFrom = max(before[RESET_AT], resetAt), max(before[RESET_FROM], resetFrom)
      end
    end
  end
  return { limit, remaining, resetAt, resetFrom, perUnitUs, now, isBucket, name }
end

local function told(takenSlot, takenAt, outcome)
  local isInFlight = takenSlot >= slot - 1
  if takenSlot == slot then
    newer = max(0, newer - 1)
  elseif isInFlight then
    older = max(0, older - 1)
  end
  aloneUntil = 0
  if outcome == ANSWERED then isKnown = 1 end
  local next = {}
  if #ARGV > 5 then
    for i = 6, #ARGV, 5 do
      next[#next + 1] = knownOf(ARGV[i], number(i + 1), number(i + 2), number(i + 3), ARGV[i + 4] == '1', takenAt)
    end
  else
    if outcome ~= UNSENT and isInFlight then spend(1) end
    for _, known in ipairs(limits) do
      if outcome ~= ANSWERED or not isOver(known) then next[#next + 1] = known end
    end
  end
  limits = next
end

if ARGV[2] == 'take' then take(ARGV[3] == '1') else told(number(3), number(4), number(5)) end

local life, texts = LEAST_LIFE_MS, {}
texts[1] = format('q1 %d %.0f %.0f %.0f %.0f %.0f', isKnown, aloneUntil, slot, newer, older, taken)
for _, known in ipairs(limits) do
  life = max(life, known[RESET_AT] - now + LEAST_LIFE_MS)
  texts[#texts + 1] = format(
    '%.0f %.0f %.0f %.0f %.0f %.0f %d %s',
    known[LIMIT], known[REMAINING], known[RESET_AT], known[RESET_FROM], known[PER_UNIT_US], known[TOLD_AT],
    known[IS_BUCKET] and 1 or 0, known[NAME]
  )
end
if waitMs == 0 then call('SET', KEYS[1], table.concat(texts, ' '), 'PX', format('%.0f', life + slack)) end
return { now, slot, waitMs, isFirst and 1 or 0, intervalUs, taken, #limits }
