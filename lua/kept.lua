--- Finds the keys of one identity among a part of this server's keys.
-- KEYS   1 a key of the identity, which says where in a cluster its keys are
-- ARGV   1 where the part before ended, '0' at the beginning; 2 the pattern of its keys
-- Returns where this part ended, '0' at the end, and the keys that were found.
return redis.call('SCAN', ARGV[1], 'MATCH', ARGV[2], 'COUNT', 1000)
