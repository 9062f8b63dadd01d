--- Where refusals count as well, a counter goes beyond its limit, up to a ceiling: what fits 4 bytes and a product with the
-- window below 2^53, and in any case the limit. Pure.

--- Most units that a window counts, refusals among them.
local function ceiling_of(limit, windowMs)
  return max(limit, min(2147483647, floor(9007199254740991 / windowMs)))
end
