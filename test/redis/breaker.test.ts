// Runs alone: stores of earlier files would go on.
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { Breaker } from '../support/inside.js'
import { redisForTests } from '../support/redis-for-tests.js'

const { server } = await redisForTests()
beforeAll(async () => {
  await server.call('RPUSH', 'list', 'a')
  await server.call('SET', 'text', 'hello')
  await server.call('ACL', 'SETUSER', 'default', '-hset')
})
afterAll(() => server.call('ACL', 'SETUSER', 'default', '+@all'))

/** The reply of Redis to a script that fails. */
async function replyTo(script: string): Promise<string> {
  const error = await server.call('EVAL', script, 2, 'list', 'text').catch((error: Error) => error)
  return (error as Error).message
}

/** The same reply in the format of Redis 6, which begins with the script and its line. */
const asOfRedis6 = (reply: string) =>
  `ERR Error running script (call to f_c0ffee): @user_script:7: ${reply.replace(/^ERR /, '').replace(/ script: .*/, '')}`

/** The state after ten such replies, while a probe remains without a reply. */
function stateAfter(reply: string): string {
  const breaker = new Breaker({
    nodeOf: () => 'here',
    probe: () => new Promise(() => {}),
    whenReady: () => () => {},
    onStateChange: undefined,
    listeners: { hasListeners: () => false, send: () => {}, isSilent: false, madeAt: undefined },
    warn: () => {},
  })
  for (let run = 0; run < 10; run++) breaker.failed(0, new Error(`redis: ${reply}`), 'probe')
  breaker.end()
  return breaker.state
}

describe('a failure of one key is no outage', () => {
  test.each([
    ['a value of another type', "return redis.call('GET', KEYS[1])"],
    ['a value that is no number to Lua', "return 1 + redis.call('GET', KEYS[2])"],
    ['a value that does not compare', "return redis.call('GET', KEYS[2]) < 3"],
    ['a value that is too short', "return struct.unpack('>I7I6', redis.call('GET', KEYS[2]))"],
    ['a value that is no number to a command', "return redis.call('INCR', KEYS[2])"],
    ['a place beyond the longest value', "return redis.call('SETRANGE', KEYS[2], '900000000', 'x')"],
  ])('an error of a single key is no outage: %s', async (_, script) => {
    const reply = await replyTo(script)
    expect(stateAfter(reply), reply).toBe('available')
    expect(stateAfter(asOfRedis6(reply)), asOfRedis6(reply)).toBe('available')
  })
})

describe('an error of every execution is an outage', () => {
  test.each([
    ['a command that is not permitted', "return redis.call('HSET', KEYS[1], 'a', 'b')"],
    ['an unknown command', "return redis.call('NOSUCH', KEYS[1])"],
    ['a command that scripts may not run', "return redis.call('SUBSCRIBE', KEYS[1])"],
    ['an unknown function', "return cjson.nosuch('WRONGTYPE')"],
    ['a script that cannot be read', 'return ='],
  ])('an error of every execution is an outage: %s', async (_, script) => {
    const reply = await replyTo(script)
    expect(stateAfter(reply), reply).toBe('unavailable')
    expect(stateAfter(asOfRedis6(reply)), asOfRedis6(reply)).toBe('unavailable')
  })

  test('an unknown command is an outage even when its reply repeats a key', async () => {
    const reply = await server.call('EVALX', 'WRONGTYPE', 'ERR value is not').catch(({ message }: Error) => message)
    expect(reply).toMatch(/^ERR unknown command .*WRONGTYPE/)
    expect(stateAfter(String(reply))).toBe('unavailable')
  })

  test.each([
    'ERR Protocol error: invalid bulk length',
    'ERR Error running script (call to f_c0ffee): @user_script:7: -OOM command not allowed',
    "ERR ACL failure in script: User app has no permissions to run the 'time' command",
  ])('a reply about every execution is an outage: %s', (reply) => {
    expect(stateAfter(reply)).toBe('unavailable')
  })
})
