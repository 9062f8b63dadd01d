import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { createLimiter, gcra, type Limiter, slidingLog, type Verdict } from '@sluice/core'
import { Redis } from 'ioredis'
import { afterAll, expect, onTestFinished, test } from 'vitest'
import * as generated from '../../../packages/core/src/redis/scripts/scripts.generated.js'
import { POLICIES, randomFrom, waysToDeny } from '../../contract/policies.js'
import { Clock } from '../../contract/store-under-test.js'
import { ownedIoredis } from '../../support/clients.js'
import { byEffort } from '../../support/effort.js'
import { monitor } from '../../support/monitor.js'
import { type RedisServer, startRedis } from '../../support/redis-server.js'
import { openStore } from '../../support/stores.js'
import { until } from '../../support/until.js'

/** Steps in all, spread evenly over the policies below. */
const STEPS = Number(process.env.SLUICE_STEPS ?? byEffort({ usual: 150, full: 30_000 }))
const SEED = Number(process.env.SLUICE_SEED ?? Math.floor(Math.random() * 2 ** 32))

// One server receives each decision alone, so that the scripts for one charge and for uniform batches decide. The other
// receives it beside decisions of other kinds, in a batch for the parts of decide.lua.
const [alone, beside] = (await Promise.all([startRedis(), startRedis()])) as [RedisServer, RedisServer]
const servers = [alone, beside]
afterAll(() => Promise.all(servers.map((server) => server.stop())))

/** The text of a script without the characters that MONITOR escapes. */
const bare = (text: string) => text.replace(/[\\\n]/g, '')
const sourceOf = ({ pieces }: generated.CutScript, parts: readonly generated.Section[]) =>
  pieces
    .filter(({ sections }) => sections.every((section) => parts.includes(section)))
    .map(({ source }) => source)
    .join('\n')
const whole = Object.values(generated).filter((value) => typeof value === 'object' && 'source' in value)
const cut = [...generated.UNIFORM_SCRIPTS, ...generated.ONE_SCRIPTS]
/** Every script but `decide` by its text, with the parts in its name that the store has added. */
const nameOf = new Map([
  ...whole.map(({ name, source }): [string, string] => [bare(source), name]),
  ...cut
    .flatMap((script) =>
      ([[], ['bans'], ['turns'], ['bans', 'turns']] as const).flatMap((parts) =>
        [[], ['calendar'] as const].map((calendar): [string, string] => {
          return [bare(sourceOf(script, [...parts, ...calendar])), [script.name, ...parts].join(' ')]
        }),
      ),
    )
    // Scripts without such parts have one text.
    .reverse(),
])

/** The name of a script in the output of MONITOR; a script for one charge begins with a line of its parameters. */
function nameOfScript(output: string): string | undefined {
  const text = output.replace(/\\\\/g, '').replace(/\\n/g, '\n')
  return nameOf.get(bare(text)) ?? nameOf.get(bare(text.slice(text.indexOf('\n'))))
}

/**
 * Records the scripts of decisions that a server receives, `decide` for all that the store composes of decide.lua. On the second server it
 * stops once an identity is blocked: a decision on a known blocked client reads the index first, and leaves others alone.
 */
async function scriptsSentTo(server: RedisServer) {
  const sent = new Set<string>()
  let shown = ''
  let knowsBlocks = false
  const stop = await monitor(server.url, ([command, text = ''], isOfScript) => {
    if (command?.toUpperCase() === 'ECHO') shown = text
    if (isOfScript || command?.toUpperCase() !== 'EVAL') return
    const name = nameOfScript(text)
    if (name === 'index') knowsBlocks = true
    if (server === beside && knowsBlocks) return
    if (name === undefined) sent.add('decide')
    else if (name.includes('-') && !name.startsWith('index')) sent.add(name)
  })
  /** MONITOR may show a command later than the client gets its reply. */
  const allSent = async () => {
    const last = randomUUID()
    await server.call('ECHO', last)
    await until('MONITOR has shown every command', () => shown === last)
    return [...sent].sort()
  }
  return { allSent, stop }
}

/** The values under the keys of a policy on a server, and their remaining lives. */
async function stateOf(server: RedisServer, policy: string): Promise<[key: string, value: unknown, lifeMs: number][]> {
  const found = [...(await server.lifetimes())].filter(([key]) => key.includes(`:${policy}:`)).sort()
  return Promise.all(
    found.map(async ([key, lifeMs]): Promise<[string, unknown, number]> => {
      if ((await server.call('TYPE', key)) === 'string') return [key, await server.call('GET', key), lifeMs]
      // Each store generates its own names of permits.
      const leases = ((await server.call('ZRANGE', key, 0, -1, 'WITHSCORES')) as string[][]).flat()
      return [key, leases.filter((_, i) => i % 2 === 1), lifeMs]
    }),
  )
}

const companions = [gcra({ limit: 9, window: '1s' }), slidingLog({ limit: 9, window: '1s' })]

const EXPECTED: Record<string, string> = {
  log: 'decide-log',
  logs: 'decide-logs',
  fixed: 'decide-counter',
  opened: 'decide-counter',
  weighted: 'decide-segments',
  up: 'decide-segments',
  strict: 'decide-segments',
  dropped: 'decide-segments',
  gcra: 'decide-bucket',
  interval: 'decide-bucket',
  queue: 'decide-bucket',
  buckets: 'decide-buckets',
  counters: 'decide-counters',
  calendar: 'decide-counter',
  calendars: 'decide-counters',
  permits: 'decide-concurrency',
  room: 'decide-bucket',
}
const room = [gcra({ limit: 12, window: '10s', reserve: { 1: 3, 2: 2 } })]
const one = Object.entries({ ...POLICIES, room }).filter(([name]) => EXPECTED[name])

/** Options whose decisions need parts of scripts, by the name of that part. */
const PARTS = {
  none: {},
  bans: { ban: { by: 'key', after: 3, within: '20s', for: ['900ms', '4s'], forgetAfter: '1m' } },
  turns: { sharedTurns: true },
} as const

const cases = one.flatMap(([name, limits]) =>
  waysToDeny(limits).flatMap((onDeny) =>
    (['none', 'bans', 'turns'] as const).map((part) => ({ name, limits, onDeny, part })),
  ),
)

for (const { name, limits, onDeny, part } of cases) {
  const expected = EXPECTED[name] as string
  const isBucket = expected.startsWith('decide-bucket')
  const title = 'alone and beside other decisions, the result and the state are the same'
  test(`${name}: ${title}, refusals charged: ${onDeny}, with part: ${part}`, async () => {
    const clock = new Clock()
    const random = randomFrom(SEED)
    const watches = await Promise.all(servers.map(scriptsSentTo))
    // A test that fails must leave nothing that disturbs the next one.
    onTestFinished(() => watches.forEach(({ stop }) => void stop()))
    await Promise.all(servers.map((server) => server.call('FLUSHALL')))
    await Promise.all(servers.map((server) => server.call('SCRIPT', 'FLUSH')))
    const places = await Promise.all(
      servers.map(async (server) => {
        const { store, close } = await openStore(ownedIoredis(new Redis<'legacy'>(server.url)), {
          clock: clock.read,
          denyCache: false,
        })
        onTestFinished(close)
        const limiter = createLimiter({ name: 'same', store, limits, onDeny, ...PARTS[part] })
        // One limit of a single cell of another kind, and one of two cells.
        const others = [isBucket ? [companions[1]] : [companions[0]], companions].map((its, i) =>
          createLimiter({ name: `company-${i}`, store, limits: its as typeof companions, ...PARTS[part] }),
        )
        return { limiter, others }
      }),
    )
    // A process that found no waiter for a key looks again after 50 ms.
    const looksAgain = async () => part === 'turns' && (await sleep(60))
    const steps = STEPS / one.length / (part === 'none' ? 1 : 2)
    const charged: { key: string; verdicts: Verdict[] }[] = []
    // Charged refusals are struck by the script that charges.
    let isStruck = onDeny === 'charge'
    for (let step = 0; step < steps; step++) {
      if (step === 1 && part === 'turns') await someoneWaits('key-2')
      if (step === 1 || step % 5 === 0) await looksAgain()
      if (random(2) === 0) clock.now += random(random(10) === 0 ? 12_000 : 900)
      if (random(33) === 0) clock.now -= random(random(3) === 0 ? 50_000 : 3_000)
      const context = `seed ${SEED}, step ${step}, at ${clock.now}`
      // First a plain charge, and plain charges together, so that each script is sent, whatever follows: after a block, decisions
      // include block keys for a second, perhaps for the whole test.
      const plain = PLAIN[step]
      const what = plain ? 50 : random(100)
      const back = what < 12 ? charged[random(charged.length + 1)] : undefined
      const one = () => ({ key: `key-${random(3)}`, cost: random(4), priority: random(3), peeks: random(9) === 0 })
      const requests = plain ?? Array.from({ length: random(4) === 0 ? 1 + random(5) : 1 }, one)
      if (!plain && random(4) === 0) requests.fill(requests[0] as ReturnType<typeof one>, random(requests.length))
      if (what === 98) await spoil(`key-${random(3)}`)
      const which = random(2)
      const results = await Promise.all(
        places.map(async ({ limiter, others }, i) => {
          if (back) return what < 8 ? limiter.refund(back.key, verdictOf(back, i)) : limiter.release(verdictOf(back, i))
          if (what === 99) return limiter.block('key-0', { for: '2s', reason: context })
          const pending = requests.map(({ key, peeks, ...how }) =>
            peeks ? limiter.peek(key, how) : limiter.consume(key, how),
          )
          if (i === 1) pending.push((others[which] as Limiter).peek(`k-${step}`))
          return (await Promise.all(pending)).slice(0, requests.length)
        }),
      )
      expect(JSON.stringify(results[0]), context).toBe(JSON.stringify(results[1]))
      if (Array.isArray(results[0])) {
        requests.forEach(({ key, peeks }, n) => {
          const verdicts = results.map((all) => (all as Verdict[])[n] as Verdict)
          if (!peeks && verdicts[0]?.allowed) charged.push({ key, verdicts })
          if (!peeks && verdicts[0]?.reason === 'limited') isStruck = true
        })
      }
      if (step % 10 === 0) {
        const [ours, theirs] = await Promise.all(servers.map((server) => stateOf(server, 'same')))
        expect(ours?.map(withoutLife), context).toEqual(theirs?.map(withoutLife))
        ours?.forEach(([key, , lifeMs], n) => {
          expect(Math.abs(lifeMs - (theirs?.[n]?.[2] as number)), `${context}: ${key}`).toBeLessThan(10_000)
        })
      }
    }
    const [sentAlone, sentBeside] = await Promise.all(watches.map(({ allSent }) => allSent()))
    // Charged refusals, several cells and windows of the calendar have no script for one charge.
    const hasOne = onDeny !== 'charge' && !/(buckets|counters)$/.test(expected) && name !== 'calendar'
    const ones = hasOne ? [expected.replace('decide', 'one')] : []
    if (part === 'none') {
      expect(sentAlone?.filter((sent) => sent !== 'decide')).toEqual([expected, ...ones])
      expect(sentBeside).toEqual(['decide'])
    } else {
      // Strikes have no script for one charge.
      const needed = part === 'turns' ? [expected, ...ones] : isStruck ? [expected] : []
      expect(sentAlone).toEqual(expect.arrayContaining(needed.map((script) => `${script} ${part}`)))
      expect(sentBeside).toContain('decide')
    }
  })
}

/** The requests of the first steps. */
const PLAIN = [['key-0'], ['key-0', 'key-1', 'key-2']].map((keys) =>
  keys.map((key) => ({ key, cost: 1, priority: 2, peeks: false })),
)
const verdictOf = ({ verdicts }: { verdicts: Verdict[] }, i: number) => verdicts[i] as Verdict
/**
 * A process that reads the index just as a ban begins writes its block anew, with the time after which the rung is forgotten. It
 * has no effect there, and depends on the instant of that read.
 */
const withoutLife = ([key, value]: [string, unknown, number]) => [
  key,
  key.endsWith(':block') ? String(value).replace(/^(\d+ \0\d+)\/\d+ /, '$1 ') : value,
]

/** Puts a foreign value under the key of a cell. A decision replaces one of waiting requests only when it looks for them. */
async function spoil(key: string): Promise<void> {
  const [first] = (await stateOf(alone, 'same')).filter(
    ([name]) => name.includes(key) && !/:(block|waiting)$/.test(name),
  )
  // Long enough that no busy machine sees its end, which comes to the two servers at two instants.
  if (first) await Promise.all(servers.map((server) => server.call('SET', first[0], 'not ours', 'PX', 600_000)))
}

/** Adds a request of another process that waits for the only cell of the key, until the end of time. */
async function someoneWaits(key: string): Promise<void> {
  const waiter = Buffer.concat([Buffer.from('some process'), Buffer.alloc(16), Buffer.from('ffffffffffff', 'hex')])
  const [[name = ''] = []] = await stateOf(alone, 'same')
  for (const { url } of servers) {
    const client = new Redis(url)
    await client.set(`${name.replace('key-0', key)}:waiting`, waiter)
    await client.set('sluice:v1:blocked:waiting', '', 'PX', 3_600_000)
    client.disconnect()
  }
}
