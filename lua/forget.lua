--- Deletes what a part of this server's keys has of one identity.
-- KEYS   1 a key of the identity, which says where in a cluster its keys are
-- ARGV   1 where the part before ended, '0' at the beginning; 2 the pattern of its keys; 3 '' or what is removed from
--        sorted sets of that pattern, in place of the keys
-- Returns where this part ended, '0' at the end.
local call = redis.call
local reply = call('SCAN', ARGV[1], 'MATCH', ARGV[2], 'COUNT', 1000)
for _, key in ipairs(reply[2]) do
  if ARGV[3] == '' then
    call('DEL', key)
  else
    -- Of another type there is nothing to remove.
    redis.pcall('ZREM', key, ARGV[3])
  end
end
return reply[1]
