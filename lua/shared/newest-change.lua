--- The number of the newest entry of changes, 0 for none. A member that is not one may have any score.
local function newestChange(key)
  local at = 0
  while true do
    at = at - 1
    local found = call('ZRANGE', key, at, at, 'WITHSCORES')
    if not found[1] then return 0 end
    if string.match(found[1], '^%l(%d+):') == found[2] then return tonumber(found[2]) end
  end
end
