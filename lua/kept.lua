--- Finds the keys of one identity among a part of this server's keys.
-- KEYS   1 a key of the identity, which determines the node in a cluster
-- ARGV   1 the cursor of the previous part, '0' at the beginning; 2 the pattern of its keys
-- Returns the cursor of the next part, '0' at the end, and the keys found.
return redis.call('SCAN', ARGV[1], 'MATCH', ARGV[2], 'COUNT', 1000)
