-- Whether a key of the decision at hand is not on this node. Only undeclared keys get here: others the server redirects.
local elsewhere

--- Fails the run for what a first read was refused, such as a command that is not permitted: if that counted as no state,
-- every limit would be as good as new. A value of another type does count as none.
local function requireRead(value)
  if type(value) == 'table' and not string.match(value.err, '^WRONGTYPE') then
    if not string.match(value.err, 'non local key') then error(value.err) end
    elsewhere = true
  end
end
