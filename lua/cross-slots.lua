--- Tests whether this server reads keys of several slots in one script. Redis does from 7.0 on, if they are not
-- declared.
-- KEYS   none
-- ARGV   keys of slots that the server should have
-- Returns 1 if all keys were read, 0 if one is on another node, -1 if the server does not support it.
if not redis.REDIS_VERSION_NUM then return -1 end
for _, key in ipairs(ARGV) do
  local value = redis.pcall('GET', key)
  if type(value) == 'table' then
    if string.match(value.err, 'non local key') then return 0 end
    return -1
  end
end
return 1
