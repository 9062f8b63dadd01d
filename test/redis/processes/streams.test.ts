// Release: runs several processes.
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { createLimiter, fixedWindow, keyed, redisStore } from '@sluice/core'
import { beforeAll, expect, test } from 'vitest'
import { ensureBuiltCore } from '../../support/built-core.js'
import { byEffort } from '../../support/effort.js'
import { redisForTests } from '../../support/redis-for-tests.js'
import { until } from '../../support/until.js'

const PROCESSES = 8
const STREAMS_EACH = 8
const STEP = 64
const CHUNK = 8
/** What a stream sends beyond what is charged: a step, and what comes while one is charged. */
const BEYOND = 2 * STEP + CHUNK
const BUDGET = byEffort({ usual: 60_000, full: 2_000_000 })
/** Processes that are killed, one after the other. */
const KILLED = byEffort({ usual: 1, full: 7 })

const { server, client } = await redisForTests()
beforeAll(ensureBuiltCore)

interface Streamer {
  readonly name: string
  readonly file: string
  readonly child: ChildProcess
}

function startStreamer(folder: string, n: number): Streamer {
  const name = `process-${n}`
  const file = join(folder, name)
  const env = {
    ...process.env,
    NODE_OPTIONS: '',
    REDIS_URL: server.url,
    SENT_FILE: file,
    STREAMS: String(STREAMS_EACH),
    BUDGET: String(BUDGET),
    STEP: String(STEP),
    NAME: name,
  }
  // Without the options of this process: it runs the built package, not the source.
  const child = fork(fileURLToPath(new URL('streamer.js', import.meta.url)), { execArgv: [], env })
  return { name, file, child }
}

/** The tokens that a process has sent so far. */
function sentBy({ file }: Streamer): number {
  const bytes = readFileSync(file)
  const streams = new Float64Array(bytes.buffer, bytes.byteOffset, Math.floor(bytes.byteLength / 8))
  return streams.reduce((sum, tokens) => sum + tokens, 0)
}

test(`${PROCESSES * STREAMS_EACH} streams in ${PROCESSES} processes use up a budget, and those that are killed leave little uncharged`, async () => {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-streams-'))
  const streamers = Array.from({ length: PROCESSES }, (_, n) => startStreamer(folder, n))
  try {
    await Promise.all(streamers.map(({ child }) => once(child, 'message')))
    const ends = streamers.map(({ child }) => Promise.race([once(child, 'message'), once(child, 'exit')]))
    for (const { child } of streamers) child.send('start')
    for (const [n, { child }] of streamers.slice(0, KILLED).entries()) {
      const part = ((n + 1) * BUDGET) / (KILLED + 1)
      await until(
        'part of the budget is used',
        async () => streamers.reduce((sum, each) => sum + sentBy(each), 0) >= part,
        { withinMs: 300_000 },
      )
      await wait(Math.random() * 20)
      child.kill('SIGKILL')
    }
    await Promise.all(ends)

    const store = redisStore(client, { timeout: 15_000 })
    const window = { unit: 'tokens', window: '30d', anchor: 'first-request' } as const
    const limiter = createLimiter<string>({
      name: 'streams',
      store,
      limits: [
        fixedWindow({ ...window, limit: BUDGET, key: keyed('tenant', () => 'one') }),
        fixedWindow({ ...window, limit: 2 ** 40, key: keyed('process', (name) => name) }),
      ],
    })
    let sent = 0
    let charged = 0
    for (const streamer of streamers) {
      const { limits } = await limiter.peek(streamer.name as never, { cost: { tokens: 0 } })
      const own = 2 ** 40 - (limits[1]?.remaining as number)
      charged = BUDGET - (limits[0]?.remaining as number)
      const uncharged = sentBy(streamer) - own
      sent += sentBy(streamer)
      expect([streamer.name, uncharged <= STREAMS_EACH * BEYOND ? 'within the bound' : uncharged]).toEqual([
        streamer.name,
        'within the bound',
      ])
    }
    expect(charged).toBeGreaterThanOrEqual(0.95 * BUDGET)
    expect(sent).toBeGreaterThanOrEqual(0.95 * BUDGET)
    expect(sent).toBeLessThanOrEqual(BUDGET + PROCESSES * STREAMS_EACH * BEYOND)
    await store.close()
  } finally {
    for (const { child } of streamers) child.kill('SIGKILL')
    rmSync(folder, { recursive: true, force: true })
  }
})
