import { randomUUID } from 'node:crypto'
import type { Server } from 'node:http'
import { redisStore } from '@sluice/core'
import { policies, RedisDocuments } from '@sluice/policies'
import fc from 'fast-check'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Answer, APPS, ask, authorize, portOf, type StartApp, withBody } from '../../console/support.js'
import { byEffort } from '../../support/effort.js'
import { type RedisServer, startRedis } from '../../support/redis-server.js'

// Random versions of a document, saved by a deployment and put in force again by two consoles that may see an old list. After each
// step, the versions are those of a model, and each rollback that was answered with success has one entry.

const RUNS = byEffort({ usual: 4, full: 500 })
const KEPT = 20

let redis: RedisServer
beforeAll(async () => {
  redis = await startRedis()
})
const open: (() => unknown)[] = []
afterAll(async () => {
  for (const close of open.splice(0).reverse()) await close()
  await redis.stop()
})

const document = (more: object, limit = 5) =>
  JSON.stringify({ version: 1, policies: { api: { key: 'user', limits: [{ limit, window: '1h' }], ...more } } })
/** Texts of versions, and whether policies take them. Long ones are read in a thread. */
const TEXTS: readonly (readonly [text: string, isRight: boolean])[] = [
  ...[1, 2, 3, 4].map((limit) => [document({}, limit), true] as const),
  [document({ description: '</script>\u001b]0;x\u0007\u202e\n+ policy forged' }), true],
  [document({ deny: { users: ['hidden-client'] }, match: { headers: { 'x-key': 'hidden-client' } } }), true],
  [`${document({}, 9)} #${'\u2028<'.repeat(byEffort({ usual: 100, full: 9000 }))}`, true],
  ['version: 1\npolicies: { "<b>": [ }', false],
  ['', false],
  ['{"__proto__":{"version":1},"version":1,"policies":{"api":{"limits":[]}}}', false],
]
const FOREIGN = ['', '{', 'null', '7', '"<b>"', '{"format":2}', '{"version":1e99,"text":"x","by":"","at":1}'] as const

const version = fc.oneof(
  { weight: 6, arbitrary: fc.integer({ min: 0, max: 6 }) },
  { weight: 1, arbitrary: fc.integer({ min: -3, max: 60 }) },
)
/** Versions are counted back from the newest: a console may have seen an older one. */
const back = fc.record({ to: version, seen: fc.oneof({ weight: 3, arbitrary: fc.constant(0) }, version) })
const step = fc.oneof(
  { weight: 3, arbitrary: fc.record({ what: fc.constant('apply' as const), text: fc.nat(TEXTS.length - 1) }) },
  { weight: 4, arbitrary: fc.record({ what: fc.constant('rollback' as const), console: fc.nat(1), back }) },
  { weight: 2, arbitrary: fc.record({ what: fc.constant('race' as const), to: fc.tuple(version, version) }) },
  { weight: 1, arbitrary: fc.record({ what: fc.constant('foreign' as const), member: fc.constantFrom(...FOREIGN) }) },
)

async function opened() {
  const prefix = `${randomUUID()}:`
  const close: (() => unknown)[] = []
  const clientOf = () => {
    const client = new Redis(redis.port)
    close.push(() => client.disconnect())
    return client
  }
  const client = clientOf()
  const documents = new RedisDocuments((command, ...args) => client.call(command, ...args), 'default', prefix)
  for (const at of [0, 1, 2]) await documents.save(TEXTS[at]?.[0] as string, at, '')
  const consoles = await Promise.all(
    [0, 1].map(async () => {
      const store = redisStore(clientOf(), { prefix, timeout: 10_000, warnings: { SLUICE_STORE_UNAVAILABLE: false } })
      const keys = { user: () => undefined }
      const made = await policies.from({ redis: clientOf(), save: clientOf(), prefix, keys, allowShrink: true })
      const server = await (APPS.Koa as StartApp)({ store, policies: made, authorize })
      close.push(
        () => store.close(),
        () => made.close(),
        () => closed(server),
      )
      const port = portOf(server)
      return (path: string, body: object) => ask(port, `/sluice/api/${path}`, { headers: withBody(port), body })
    }),
  )
  const end = async () => {
    for (const each of close.reverse()) await each()
  }
  return { documents, client, key: `${prefix}policies:{default}:versions`, consoles, end }
}

test('versions are those of a model, whoever puts which one in force again', async () => {
  let changed = 0
  let conflicts = 0
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 10, maxLength: 40 }), async (steps) => {
      const { documents, client, key, consoles, end } = await opened()
      try {
        const texts = [0, 1, 2]
        let entries = 0
        const kept = (at: number) => at >= 1 && at <= texts.length && at > texts.length - KEPT
        const expectedOf = (to: number, seen: number): number => {
          if (to < 1 || seen < 1) return 400
          if (seen !== texts.length) return 409
          if (!kept(to)) return 404
          return texts[to - 1] === texts[seen - 1] || TEXTS[texts[to - 1] as number]?.[1] ? 200 : 400
        }
        const note = (to: number) => {
          if (texts[to - 1] === texts.at(-1)) return
          texts.push(texts[to - 1] as number)
          entries++
          changed++
        }
        for (const each of steps) {
          const newest = texts.length
          if (each.what === 'apply') {
            await documents.save(TEXTS[each.text]?.[0] as string, newest, 'ci')
            texts.push(each.text)
          } else if (each.what === 'foreign') {
            await client.rpush(key, each.member)
          } else if (each.what === 'rollback') {
            const body = { version: newest - each.back.to, expected: newest - each.back.seen }
            const expected = expectedOf(body.version, body.expected)
            const answer = await (consoles[each.console] as (typeof consoles)[0])('rollback', body)
            expect({ body, status: answer.status, detail: answer.json.detail }).toMatchObject({
              body,
              status: expected,
            })
            expectHarmless(answer)
            if (expected === 409) {
              conflicts++
              expect(answer.json.found).toEqual({ version: newest })
            }
            if (expected !== 200) continue
            note(body.version)
            expect(answer.json).toEqual({ version: texts.length })
          } else {
            const bodies = each.to.map((to) => ({ version: newest - to, expected: newest }))
            const answers = await Promise.all(
              bodies.map((body, i) => consoles[i]?.('rollback', body) as Promise<Answer>),
            )
            const winner = answers.findIndex(({ status, json }) => status === 200 && json.version > newest)
            const mayWin = bodies.map(
              ({ version: to }) => expectedOf(to, newest) === 200 && texts[to - 1] !== texts.at(-1),
            )
            expect({ bodies, won: winner >= 0 }).toEqual({ bodies, won: mayWin.includes(true) })
            for (const [i, { status, json }] of answers.entries()) {
              const alone = expectedOf(bodies[i]?.version as number, newest)
              if (i === winner) expect(json).toEqual({ version: newest + 1 })
              else expect([alone, ...(winner >= 0 ? [409] : [])]).toContain(status)
            }
            if (winner >= 0) note(bodies[winner]?.version as number)
          }
          expect(await documents.newest()).toMatchObject({
            version: texts.length,
            text: TEXTS[texts.at(-1) as number]?.[0],
          })
        }
        const [first] = consoles as [(typeof consoles)[0]]
        const list = await first('versions', {})
        expectHarmless(list)
        expect(list.json.versions.map((each: { version: number }) => each.version)).toEqual(
          texts.map((_, i) => texts.length - i).slice(0, KEPT),
        )
        const made = (await first('changes', { max: 1000 })).json.entries
        expect(made.filter(({ state }: { state: string }) => state === 'done')).toHaveLength(entries)
        // A race is lost after its entry was written, or before.
        expect(made.every(({ state }: { state: string }) => state !== 'begun')).toBe(true)
      } finally {
        await end()
      }
    }),
    { numRuns: RUNS, seed: byEffort({ usual: 7, full: Date.now() }) },
  )
  // Else the attacker is no attacker.
  expect(changed).toBeGreaterThan(RUNS)
  expect(conflicts).toBeGreaterThan(0)
}, 600_000)

function expectHarmless({ text }: Answer): void {
  expect(text).toMatch(/^[ -~]*$/)
  expect(text).not.toMatch(/[<>&']|hidden-client|\n\+ policy forged|\bat .*:\d+:\d+|node_modules/)
}

function closed(server: Server): Promise<void> {
  server.closeAllConnections()
  return new Promise((resolve) => server.close(() => resolve()))
}
