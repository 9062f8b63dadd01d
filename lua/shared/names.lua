--- The names by which scripts of decisions call Lua and Redis, and the numbers that they share with the store.

-- A first read goes through pcall. Its error is a table of length 0, so a foreign value counts as no state, and the
-- next charge replaces it. One foreign value must not fail the other decisions of its batch.
local tryCall = redis.pcall
local call, floor, ceil, max, min = redis.call, math.floor, math.ceil, math.max, math.min
local packBytes, unpackBytes = struct.pack, struct.unpack
local sub, rep, format, concat = string.sub, string.rep, string.format, table.concat

-- The build exports the numbers below to the store, under these names.
--- @export ops
local CONSUME, PEEK, CHARGE, REFUND, RELEASE = 0, 1, 2, 3, 4
-- Added to the op of a run that needs more room than it charges, of a run with all decisions on one key, of a run
-- whose refusals are strikes, and of a run whose charges are kept.
--- @export flags
local RESERVING, TOGETHER, STRIKING, KEEPING = 8, 16, 32, 64
--- @export outcomes
local REFUSED, ADMITTED, BLOCKED, ELSEWHERE, REFUNDS, EQUALS, BEGUN = 0, 1, 2, 3, 4, 8, 16
-- Whole replies where nothing was decided: the store needs to send the block keys, or the records of waiters. It tells
-- them apart by their length.
local MAY_BE_BLOCKED, SOMEBODY_WAITS = '', ' '
--- @include "made/kinds"

-- Extra life of a key in ms, which saves setting its expiry again.
local LINGER = 10000
