// Release: runs examples.
import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { freePort } from '../../../scripts/lib/ports.js'
import { seriesIn, sumOf } from '../../metrics/exposition.js'
import { startPrometheus } from '../../support/prometheus.js'
import { until } from '../../support/until.js'
import { type Program, startExample } from './program.js'

const FOLDER = new URL('../../../examples/observability/', import.meta.url)
const SETTINGS = readFileSync(new URL('prometheus.yml', FOLDER), 'utf8')
const ALERTS_PATH = '../../packages/prometheus/alerts.yaml'
const ALERTS = readFileSync(new URL(ALERTS_PATH, FOLDER), 'utf8')
const SERVERS = ['express', 'koa', 'fastify'] as const

/** If the ports are not free, the demo ends, and the next three are tried. */
async function startDemo(lines: number, env: Record<string, string> = {}): Promise<{ demo: Program; port: number }> {
  for (let tries = 0; ; tries++) {
    const port = await freePort()
    try {
      return { demo: await startExample('demo/main.js', lines, { REDIS_URL: '', ...env, PORT: String(port) }), port }
    } catch (error) {
      if (tries > 5 || !/EADDRINUSE/.test(String(error))) throw error
    }
  }
}

const replaced = (text: string, from: string, to: string) => {
  expect(text.split(from)).toHaveLength(2)
  return text.replace(from, () => to)
}

test('Prometheus scrapes all three servers of the demo, and has the decisions that clients received', async () => {
  const { demo, port } = await startDemo(3)
  const targets = SERVERS.map((_, i) => `127.0.0.1:${port + i}`).join(', ')
  let settings = replaced(SETTINGS, 'localhost:3000', targets)
  settings = replaced(settings, ALERTS_PATH, 'alerts.yaml').replaceAll(': 5s', ': 1s')
  const prometheus = await startPrometheus(settings, await freePort(), { 'alerts.yaml': ALERTS })
  try {
    for (const i of [0, 1, 2]) {
      const statuses: number[] = []
      for (let n = 0; n < 8; n++) {
        const response = await fetch(`http://127.0.0.1:${port + i}/limited`)
        await response.arrayBuffer()
        statuses.push(response.status)
      }
      // 5 per 10 s: a busy machine may take so long that there is room again.
      const admitted = statuses.filter((status) => status === 200).length
      const refused = statuses.filter((status) => status === 429).length
      expect([admitted + refused, refused > 0]).toEqual([8, true])

      const policy = `${SERVERS[i]}-limited`
      const text = await (await fetch(`http://127.0.0.1:${port + i}/metrics`)).text()
      const shown = (outcome: string) => sumOf(seriesIn(text), 'sluice_requests_total', { policy, outcome })
      expect([shown('admitted'), shown('limited')]).toEqual([admitted, refused])
      // Each server shows the metrics of the process.
      for (const instance of targets.split(', ')) {
        const labels = `policy="${policy}", outcome="limited", instance="${instance}"`
        await until(`Prometheus has seen ${policy} at ${instance}`, async () => {
          const [series] = await prometheus.query(`sum(sluice_requests_total{${labels}})`)
          return series?.value === refused
        })
      }
    }
    expect((await prometheus.query('up')).map(({ value }) => value)).toEqual([1, 1, 1])
    type Groups = { groups: { rules: { name: string; health: string; state: string }[] }[] }
    await until('the alerts were evaluated', async () => {
      const { groups } = await prometheus.ask<Groups>('rules')
      const rules = groups.flatMap((group) => group.rules)
      return rules.length >= 9 && rules.every(({ health, state }) => health === 'ok' && state === 'inactive')
    })
  } finally {
    await prometheus.stop()
    expect(await demo.end('SIGTERM')).toBe(0)
  }
})

test('the load of the example is served, and the demo prints its decisions each second', async () => {
  const { demo, port } = await startDemo(12, { FIGURES: '1' })
  const figures = demo.lines.filter((line) => line.includes('decisions,'))
  expect(figures.length).toBeGreaterThan(0)
  for (const line of figures) expect(line).toMatch(/^\d+ decisions, \d+ refused, \d+ alone, \d+ waiting$/)
  const load = await startExample('observability/load.js', 1, { PORT: String(port) })
  try {
    await until('some were refused, and some only would be', async () => {
      const series = seriesIn(await (await fetch(`http://127.0.0.1:${port}/metrics`)).text())
      const refused = sumOf(series, 'sluice_requests_total', { outcome: 'limited', reported: 'false' })
      const reported = sumOf(series, 'sluice_requests_total', { outcome: 'limited', reported: 'true' })
      return refused > 3 && reported > 0
    })
  } finally {
    await load.end('SIGTERM')
    expect(await demo.end('SIGTERM')).toBe(0)
  }
})
