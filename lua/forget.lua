--- Deletes the data of one identity in a part of this server's keys.
-- KEYS   1 a key of the identity, which determines the node in a cluster
-- ARGV   1 the cursor of the previous part, '0' at the beginning; 2 the pattern of its keys; 3 '', or a member to
--        remove from sorted sets of that pattern instead of deleting the keys
-- Returns the cursor of the next part, '0' at the end.
local call = redis.call
local reply = call('SCAN', ARGV[1], 'MATCH', ARGV[2], 'COUNT', 1000)
for _, key in ipairs(reply[2]) do
  if ARGV[3] == '' then
    call('DEL', key)
  else
    -- Other types have nothing to remove.
    redis.pcall('ZREM', key, ARGV[3])
  end
end
return reply[1]
