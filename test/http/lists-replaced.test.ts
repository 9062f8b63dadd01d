import { mkdtemp, rename, rm, writeFile } from 'node:fs/promises'
import { Agent, request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileList } from '@sluice/core'
import { expect, test } from 'vitest'
import { byEffort } from '../support/effort.js'
import { until } from '../support/until.js'
import { run } from './support/app.js'
import { koaApp } from './support/koa.js'

const REPLACEMENTS = byEffort({ quick: 3, usual: 8, full: 100 })
const LINES = 5000

/** The first and the last line are in every version; those between identify the version. */
const versionOf = (n: number) =>
  ['192.0.2.1', ...Array.from({ length: LINES }, (_, i) => `10.${n}.${i >> 8}.${i & 255}`), '192.0.2.2'].join('\n')

test(`a file replaced ${REPLACEMENTS} times under load fails no request, and no request sees half of it`, async () => {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-lists-'))
  const path = join(folder, 'deny.txt')
  await writeFile(path, versionOf(0))
  const deny = fileList(path)
  await deny.ready()
  const app = await run(koaApp, {
    trustProxy: true,
    routes: { '/': { limiters: [{ limit: 1e6, window: '1h', deny }] } },
  })
  const agent = new Agent({ keepAlive: true })
  const statusFor = (from: string) =>
    new Promise<number>((resolve, reject) => {
      const sent = request(`${app.url}/`, { agent, headers: { 'x-forwarded-for': from } }, (response) => {
        response.resume().on('end', () => resolve(response.statusCode as number))
      })
      sent.on('error', reject).end()
    })
  let isDone = false
  let requests = 0
  const wrong: string[] = []
  const client = async () => {
    while (!isDone) {
      for (const [from, expected] of [
        ['192.0.2.1', 403],
        ['192.0.2.2', 403],
        ['192.0.2.3', 200],
      ] as const) {
        const status = await statusFor(from).catch(String)
        requests++
        if (status !== expected) wrong.push(`${from}: ${status}`)
      }
    }
  }
  const clients = Array.from({ length: 4 }, client)
  try {
    for (let n = 1; n <= REPLACEMENTS; n++) {
      await writeFile(`${path}.new`, versionOf(n))
      await rename(`${path}.new`, path)
      await until(`version ${n} is in use`, () => deny.match({ kind: 'ip', value: `10.${n}.0.1` }))
      expect(deny.match({ kind: 'ip', value: `10.${n - 1}.0.1` })).toBeUndefined()
    }
    isDone = true
    await Promise.all(clients)
    expect(wrong).toEqual([])
    expect(app.errors).toEqual([])
    expect(requests).toBeGreaterThan(REPLACEMENTS)
    expect([deny.version, deny.size]).toEqual([REPLACEMENTS + 1, LINES + 2])
  } finally {
    isDone = true
    agent.destroy()
    await deny.close()
    await app.close()
    await rm(folder, { recursive: true, force: true })
  }
})
