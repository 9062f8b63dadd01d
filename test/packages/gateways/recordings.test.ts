// Release: runs four processes on Redis.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, expect, onTestFinished, test } from 'vitest'
import { freePort } from '../../../scripts/lib/ports.js'
import { filesOfRecording, replayed } from '../../simulate/recorded.js'
import { startRedis } from '../../support/redis-server.js'
import { until } from '../../support/until.js'
import { type RunningDecider, startDecider } from './support.js'

const running: RunningDecider[] = []
afterEach(async () => {
  for (const decider of running.splice(0)) await decider.end('SIGKILL')
})

const DOCUMENT = {
  version: 1,
  policies: {
    log: { match: { paths: ['/other'] }, limits: [{ limit: 5, window: '2s' }] },
    users: { match: { paths: ['/users'] }, key: 'user', anonymous: 'by-ip', limits: [{ limit: 4, window: '1s' }] },
  },
}

/** A decider of four processes that records, on a Redis of its own. */
async function recorder() {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-recording-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const [file, document, secret] = [join(folder, 'requests.log'), join(folder, 'p.json'), join(folder, 'secret')]
  writeFileSync(document, JSON.stringify(DOCUMENT))
  writeFileSync(secret, 'a secret of all processes\n')
  const redis = await startRedis()
  onTestFinished(() => redis.stop())
  const args = ['--document', document, '--dialect', 'json', '--key', 'user', '--workers', '4', '--record', file]
  const decider = await startDecider(await freePort(), [...args, '--record-secret-file', secret], {
    REDIS_URL: redis.url,
  })
  running.push(decider)
  return { decider, file }
}

/** Asks on connections of their own, which reach all processes. Resolves to the number of replies. */
async function ask(url: string, rounds: number): Promise<number> {
  let replies = 0
  for (let n = 0; n < rounds; n++) {
    await Promise.all(
      Array.from({ length: 8 }, async (_, i) => {
        const client = (n * 3 + i) % 6
        const body = {
          path: i % 2 === 0 ? '/users' : '/other',
          ip: `192.0.2.${client}`,
          keys: { user: `u${client % 4}` },
        }
        const headers = { 'content-type': 'application/json', connection: 'close' }
        // A process that is killed has no reply for what it was asked.
        const response = await fetch(`${url}/v1/decide`, { method: 'POST', headers, body: JSON.stringify(body) }).catch(
          () => undefined,
        )
        if (response?.ok && (await response.json().catch(() => undefined))) replies++
      }),
    )
  }
  return replies
}

/** Whom the policy of a request counts. */
function clientOf(line: Readonly<Record<string, unknown>>): string {
  const { path, ip, ids } = line as {
    readonly path: string
    readonly ip: readonly string[]
    readonly ids: { readonly user: string } | undefined
  }
  return `${path} ${path === '/users' ? ids?.user : ip.join()}`
}

/**
 * How many more requests of a client in a ms the replay admits. Processes cannot know the order of requests of one ms: which
 * of these is admitted is open, and how many is not.
 */
function differenceByMs(requests: Awaited<ReturnType<typeof replayed>>): Map<string, number> {
  const differences = new Map<string, number>()
  for (const { recorded, isAdmitted, line } of requests) {
    const key = `${Math.floor(Number(line.time))} ${clientOf(line)}`
    const difference = Number(isAdmitted) - Number(recorded === 'admitted')
    differences.set(key, (differences.get(key) ?? 0) + difference)
  }
  return differences
}

test('records of four processes, replayed by their document, differ at most in the order of requests of one ms', async () => {
  const { decider, file } = await recorder()
  const replies = await ask(decider.url, 100)
  expect(await decider.end()).toBe(0)
  const files = filesOfRecording(file)
  expect(files.map((each) => each.slice(file.length))).toEqual(['.worker-1', '.worker-2', '.worker-3', '.worker-4'])
  const requests = await replayed(files, DOCUMENT)
  expect(requests).toHaveLength(replies)
  expect(requests.some(({ isAdmitted }) => !isAdmitted)).toBe(true)
  // On a busy machine a process may decide on a client by itself, which no replay knows.
  const alone = new Set(requests.filter(({ line }) => line.by === 'process').map(({ line }) => clientOf(line)))
  const decided = requests.filter(({ line }) => !alone.has(clientOf(line)))
  expect([...differenceByMs(decided)].filter(([, difference]) => difference !== 0)).toEqual([])
})

test('a process that is killed loses at most its last records, and its successor goes on in a file of its own', async () => {
  const { decider, file } = await recorder()
  const before = await ask(decider.url, 20)
  const written = () =>
    filesOfRecording(file).flatMap((each) => readFileSync(each, 'utf8').match(/^\{.*\n/gm) ?? []).length
  await until('the records are written', () => written() === before)
  const killedAt = Date.now()
  const [killed = 0, ...others] = await decider.workers()
  process.kill(killed, 'SIGKILL')
  await until('another one has started', async () => {
    const now = await decider.workers()
    return now.length === 4 && !now.includes(killed) && others.every((pid) => now.includes(pid))
  })
  await until('it records', async () => {
    await ask(decider.url, 2)
    return filesOfRecording(file).some((name) => name.endsWith('.1'))
  })
  expect(await decider.end()).toBe(0)
  const files = filesOfRecording(file)
  const requests = await replayed(files, DOCUMENT)
  const earlier = requests.filter(({ line }) => Number(line.time) < killedAt)
  expect(earlier).toHaveLength(before)
  for (const each of files) expect(readFileSync(each, 'utf8')).toMatch(/^#sluice-recording /)
  // Each lost record may change later decisions on its client.
  const alone = new Set(earlier.filter(({ line }) => line.by === 'process').map(({ line }) => clientOf(line)))
  const kept = earlier.filter(({ line }) => !alone.has(clientOf(line)))
  expect([...differenceByMs(kept)].filter(([, difference]) => difference !== 0)).toEqual([])
})
