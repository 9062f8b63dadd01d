--- If refusals count too, a counter may exceed its limit, up to a ceiling. The ceiling fits in 4 bytes, its product
-- with the window stays below 2^53, and it is never less than the limit. Pure.

--- Maximum units that a window counts, including refusals.
local function ceiling_of(limit, windowMs)
  return max(limit, min(2147483647, floor(9007199254740991 / windowMs)))
end
