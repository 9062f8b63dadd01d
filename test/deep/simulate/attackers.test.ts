// Deep: needs goaccess or crowdsec.
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { afterAll, expect, test } from 'vitest'
import { sluice } from '../../cli/support.js'
import { HOSTILE } from '../../simulate/hostile-texts.js'
import { byEffort } from '../../support/effort.js'

const RUNS = byEffort({ usual: 20, full: 300 })
const folder = mkdtempSync(join(tmpdir(), 'sluice-attackers-'))
afterAll(() => rmSync(folder, { recursive: true }))

const STEERING = /(?!\n)[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u
const MONTHS = ['Jan', 'Feb', 'Mar', 'Dec', 'Xxx']
const DOCUMENT = JSON.stringify({
  version: 1,
  policies: {
    api: {
      limits: [
        { limit: 2, window: '1m' },
        { name: 'all', algorithm: 'gcra', limit: 30, window: '1s', key: 'everyone' },
      ],
    },
    login: { match: { paths: ['/login/**'] }, count: { only: 'failure' }, limits: [{ limit: 1, window: '1h' }] },
  },
})

function mulberry(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let t = Math.imul(state ^ (state >>> 15), 1 | state)
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32
  }
}

/** A log as an attacker would have it written, or a disk would leave it. */
function attack(random: () => number): Buffer {
  const below = (n: number) => Math.floor(random() * n)
  const pick = <T>(all: readonly T[]) => all[below(all.length)] as T
  const two = (n: number) => String(n).padStart(2, '0')
  let clock = 0
  const date = () => {
    // It goes on, stands still, or jumps back.
    clock += pick([0, 0, 1, 7, 3600, -1, -5000])
    const zone = `${pick(['+', '-'])}${two(below(15))}${pick(['00', '30', '45'])}`
    if (random() < 0.02)
      return `${two(below(40))}/${pick(MONTHS)}/${pick([0, 1, 1969, 2026, 9999])}:${two(below(30))}:00:${two(below(70))} ${zone}`
    const at = new Date(Date.UTC(2026, 2, 1) + clock * 1000)
    return `${two(at.getUTCDate())}/Mar/2026:${two(at.getUTCHours())}:${two(at.getUTCMinutes())}:${two(at.getUTCSeconds())} ${random() < 0.9 ? '+0000' : zone}`
  }
  const text = () => pick([...HOSTILE, 'curl/8', '-', '', '"', '\\', '\\x22', '\\x', '😀', 'a'.repeat(below(3000))])
  const ip = () =>
    pick(['192.0.2.7', '192.0.2.8', '2001:db8::1', '::ffff:192.0.2.9', '999.1.1.1', 'localhost', '-', text()])
  const line = () =>
    `${ip()} - ${pick(['-', 'ann', text()])} [${date()}] "${pick(['GET', 'POST', text()])} ${pick(['/', '/login/x', '/users/42', '*', text()])} HTTP/1.1" ${pick(['200', '401', '499', '000', '-1', '99999999999'])} ${pick(['0', '12', '-', '1e9'])} "-" "${text()}"`
  const harmless = () => `192.0.2.1 - - [01/Mar/2026:00:00:00 +0000] "GET / HTTP/1.1" 200 1 "-" "curl/8.9"`
  const lines = Array.from({ length: 20 + below(300) }, () => {
    const whole = Buffer.from(line())
    const fate = random()
    if (fate < 0.9) return whole
    if (fate < 0.94) return whole.subarray(0, below(whole.length))
    if (fate < 0.98) return Buffer.from(Array.from({ length: below(300) }, () => below(256)))
    return Buffer.alloc(fate < 0.982 ? 10_000_000 : 10_000, pick(['x', '\0', '"', ' ']))
  })
  // Others begin as binary files do, which are refused.
  if (random() < 0.9) lines.unshift(...Array.from({ length: 80 }, () => Buffer.from(harmless())))
  return Buffer.concat(lines.flatMap((each) => [each, Buffer.from(pick(['\n', '\n', '\r\n']))]))
}

test('whatever a log contains, it is played or answered by a sentence, and steers nothing', {
  timeout: 3_600_000,
}, async () => {
  const document = join(folder, 'policies.json')
  const log = join(folder, 'access.log')
  const html = join(folder, 'report.html')
  writeFileSync(document, DOCUMENT)
  let played = 0
  for (let seed = 1; seed <= RUNS; seed++) {
    const random = mulberry(seed)
    const bytes = attack(random)
    writeFileSync(log, random() < 0.3 ? gzipSync(bytes) : bytes)
    rmSync(html, { force: true })
    const lenient = random() < 0.8 ? ['--lenient'] : []
    const more = random() < 0.3 ? ['--curve', '--good', '192.0.2.0/24'] : []
    const args = ['simulate', log, '--document', document, '--format', 'combined', '--html', html, ...lenient, ...more]
    const { code, stdout, stderr } = await sluice(args)
    const said = `seed ${seed}: ${stdout}${stderr}`
    expect(said).not.toMatch(STEERING)
    if (code === 2) {
      expect(stderr, said).toMatch(/^sluice: /)
      expect(stderr, said).not.toMatch(/\n\s+at /)
      expect(existsSync(html), said).toBe(false)
    } else {
      played++
      expect([0, 1], said).toContain(code)
      const page = readFileSync(html, 'utf8')
      expect(page.endsWith('</html>\n'), said).toBe(true)
      expect(page.replaceAll('\n', ''), said).not.toMatch(STEERING)
      expect(
        page.match(/<(script|style|img|iframe|svg onload|!--)/g)?.filter((tag) => tag !== '<style'),
        said,
      ).toEqual(['<script'])
    }
    expect(
      readdirSync(folder).filter((name) => !['policies.json', 'access.log', 'report.html'].includes(name)),
    ).toEqual([])
  }
  expect(played).toBeGreaterThan(RUNS / 2)
})
