--- Whether this server reads keys of several slots in one script, as Redis does from 7.0 on where they are not declared.
-- KEYS   none
-- ARGV   keys of slots that the server keeps
-- Returns 1 if it has read all of them, 0 if one is on another node, -1 if it does not do so.
if not redis.REDIS_VERSION_NUM then return -1 end
for _, key in ipairs(ARGV) do
  local value = redis.pcall('GET', key)
  if type(value) == 'table' then
    if string.match(value.err, 'non local key') then return 0 end
    return -1
  end
end
return 1
