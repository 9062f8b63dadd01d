/**
 * The commands that scripts of the index of blocks call, each on a key that nothing else uses. See `commandsNeeded`.
 */
export function commandsOfBlocks(key: string): string[][] {
  return [
    ['PTTL', key],
    ['PEXPIRE', key, '1'],
    ['HMGET', key, 'a'],
    ['HLEN', key],
    ['HSET', key, 'a', ''],
    ['HDEL', key, 'a'],
    ['DEL', key],
    ['ZCARD', key],
    ['ZSCORE', key, 'a'],
    ['ZRANGE', key, '0', '0'],
    ['ZRANGEBYSCORE', key, '0', '0'],
    ['ZREM', key, 'a'],
    ['ZADD', key, '0', 'a'],
    ['DEL', key],
  ]
}
