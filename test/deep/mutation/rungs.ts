import type { Check } from './check.js'
import type { MutatedRedis } from './mutated-redis.js'

const SLACK_MS = 3_600_000
/** The longest time between an execution and the reading of a key's remaining life. */
const PASSED_MS = 5000
/** All of its six bytes are ASCII, so that texts can hold it. */
const ENDS = 0x01_02_03_04_05_06
const NOW = ENDS - 9000
const FORGET_AFTER_MS = 70_000
const REASON = `\0${2}/${FORGET_AFTER_MS} 3 why`
const RECORD = '\x02\x01\x02\x03\x04\x05\x06'
const [BLOCK, STRIKES] = ['{s}:block', '{s}:strikes']

/** The scripts that restore a ban, for one server and for a cluster. */
const WAYS: Record<string, (redis: MutatedRedis, reason: string, ends: number) => Promise<unknown>> = {
  index: (redis, reason, ends) =>
    redis.runNamed(
      'index',
      ['{s}:entries', '{s}:changes', '{s}:marker', BLOCK, STRIKES],
      [NOW, 'i', 0, 'field', 'KEEP', ends, NOW - 1, 1, reason],
    ),
  block: (redis, reason, ends) => redis.runNamed('block', [BLOCK, STRIKES], [NOW, 0, reason, ends]),
}

/** The value under the key of strikes before, and whether it remains. */
const BEFORE: Record<string, { record: string; stays: boolean }> = {
  nothing: { record: '', stays: false },
  'strikes of the rung before': { record: '\x01abcdef12345678', stays: false },
  'the same rung': { record: '\x02abcdef', stays: true },
  'a higher rung, with strikes': { record: '\x03abcdef12345678', stays: true },
  'what is none': { record: '\x05abcde', stays: false },
}

async function wrongRung(redis: MutatedRedis, way: string): Promise<string | undefined> {
  const write = WAYS[way] as (typeof WAYS)[string]
  for (const [what, { record, stays }] of Object.entries({ ...BEFORE, 'a hash': { record: 'hash', stays: false } })) {
    await redis.call('FLUSHALL')
    if (record === 'hash') await redis.call('HSET', STRIKES, 'a', 'b')
    else if (record !== '') await redis.call('SET', STRIKES, record)
    await write(redis, REASON, ENDS)
    const [found, left] = [await redis.call('GET', STRIKES), Number(await redis.call('PTTL', STRIKES))]
    if (found !== (stays ? record : RECORD)) return `beside ${what}: ${JSON.stringify(found)}`
    const life = 9000 + FORGET_AFTER_MS + SLACK_MS
    if (!stays && (left > life || left < life - PASSED_MS)) return `beside ${what}: lives ${left} ms, not ${life}`
    const blockLeft = Number(await redis.call('PTTL', BLOCK))
    if (blockLeft > 9000 + SLACK_MS || blockLeft < 9000 + SLACK_MS - PASSED_MS) return `the block lives ${blockLeft} ms`
    if ((await redis.call('GET', BLOCK)) !== `${ENDS} ${REASON}`) return 'the block is another'
  }
  for (const reason of ['', 'why', '2/70000 3 why', '\x002 3 why', '\0\x002/70000 3 why']) {
    await redis.call('FLUSHALL')
    await write(redis, reason, ENDS)
    if ((await redis.call('EXISTS', STRIKES)) !== 0) return `${JSON.stringify(reason)} is taken for a ban`
  }
  await redis.call('FLUSHALL')
  await write(redis, REASON, NOW)
  return (await redis.call('EXISTS', BLOCK, STRIKES)) === 0 ? undefined : 'what has ended is written again'
}

/** A new block on a cluster, which has its own life and no rung. */
async function wrongBlock(redis: MutatedRedis): Promise<string | undefined> {
  await redis.call('FLUSHALL')
  const [ends] = (await redis.runNamed('block', [BLOCK], [NOW, 9000, REASON])) as [string]
  const left = Number(await redis.call('PTTL', BLOCK))
  if (ends !== String(ENDS)) return `it ends at ${ends}`
  return left > 9000 + SLACK_MS || left < 9000 + SLACK_MS - PASSED_MS ? `it lives ${left} ms` : undefined
}

export const rungChecks: readonly Check[] = [
  ...Object.keys(WAYS).map(
    (way): Check => ({ name: `rungs: written again by ${way}`, run: ({ redis }) => wrongRung(redis, way) }),
  ),
  { name: 'rungs: a block by hand', run: ({ redis }) => wrongBlock(redis) },
]
