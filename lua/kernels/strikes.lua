--- Strikes of one identity, and the ladder of its bans. Pure.
-- state { rung, since (ms), strikes } `strikes`: 8 bytes each, instant (6) and weight (2), oldest first.
-- Invariant: the weights add up to less than `after`, as the strike that starts a ban clears them.

--- The instant of the last strike; `now` if there is none.
local function strikes_last(strikes, now)
  if strikes == '' then return now end
  return (struct.unpack('>I6', strikes, #strikes - 7))
end

--- The strikes, none of them later than `at`: an impossible future instant is read as now.
local function strikes_until(strikes, at)
  local kept = ''
  for i = 1, #strikes, 8 do
    local since, weight = struct.unpack('>I6I2', strikes, i)
    kept = kept .. packBytes('>I6I2', min(since, at), weight)
  end
  return kept
end

--- The strikes that count at `at`, and their weight.
local function strikes_live(strikes, at, withinMs)
  local from, units = 1, 0
  for i = 1, #strikes, 8 do
    local since, weight = struct.unpack('>I6I2', strikes, i)
    if at - since >= withinMs then from = i + 8 else units = units + weight end
  end
  return string.sub(strikes, from), units
end

--- The rung that is remembered at `at`.
local function strikes_rung(rung, since, at, forgetAfterMs)
  if at - since >= forgetAfterMs then return 0 end
  return rung
end

--- The instant from which forgetting a record has no effect.
local function strikes_end(rung, since, strikes, withinMs, forgetAfterMs)
  local ends = 0
  if strikes ~= '' then ends = strikes_last(strikes, 0) + withinMs end
  if rung > 0 then ends = max(ends, since + forgetAfterMs) end
  return ends
end
