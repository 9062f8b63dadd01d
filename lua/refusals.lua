--- Adds refusals of identities by a policy, to time slices of several windows.
-- KEYS   for each slice: a sorted set of counts by identity; a hash, `refusals` of all, and the most by which counts
--        may be too low
-- ARGV   1 the number of identities to store; 2 the number of refusals; 3 the most by which counts may additionally be
--        too low; for each slice its life in ms; then identities, each with a count
local call = redis.call
local kept = tonumber(ARGV[1])
local slices = #KEYS / 2
for slice = 1, slices do
  local counts, sums, life = KEYS[2 * slice - 1], KEYS[2 * slice], ARGV[3 + slice]
  -- Nothing is written before it is certain that it gets an expiry.
  call('PEXPIRE', counts, life)
  for a = 4 + slices, #ARGV, 2 do
    call('ZADD', counts, 'INCR', ARGV[a + 1], ARGV[a])
  end
  local size, lost = call('ZCARD', counts), 0
  if size > 2 * kept then
    -- All counts are lowered until this many identities are left.
    lost = tonumber(call('ZRANGE', counts, size - kept - 1, size - kept - 1, 'WITHSCORES')[2])
    call('ZREMRANGEBYSCORE', counts, '-inf', lost)
    for _, identity in ipairs(call('ZRANGE', counts, 0, -1)) do
      call('ZADD', counts, 'INCR', -lost, identity)
    end
  end
  local sum = call('HMGET', sums, 'refusals', 'error')
  call('HSET', sums, 'refusals', (tonumber(sum[1]) or 0) + ARGV[2], 'error', (tonumber(sum[2]) or 0) + ARGV[3] + lost)
  call('PEXPIRE', counts, life)
  call('PEXPIRE', sums, life)
end
