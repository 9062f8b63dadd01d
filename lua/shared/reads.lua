-- Whether a key of the current decision is not on this node. Only undeclared keys get here: the server redirects
-- others.
local elsewhere

--- Fails the script for a refused first read, such as a forbidden command: if that counted as no state, every limit
-- would be unused. A value of another type does count as no state.
local function requireRead(value)
  if type(value) == 'table' and not string.match(value.err, '^WRONGTYPE') then
    if not string.match(value.err, 'non local key') then error(value.err) end
    elsewhere = true
  end
end
