import { createHash } from 'node:crypto'
import { unnamedPath } from '@sluice/core/internal'
import { expect, test } from 'vitest'
import { agentText } from '../../packages/simulate/src/figures/agent-text.js'
import { withPseudonyms } from '../../packages/simulate/src/report/pseudonyms.js'
import { sampleReport } from './sample-report.js'

const bytes = (n: number) => createHash('sha256').update(`token ${n}`).digest()

test('no identity of a client is left in a report with pseudonyms', () => {
  const report = sampleReport()
  const text = JSON.stringify(withPseudonyms(report))
  for (const { identity } of [...report.refused, ...(report.against?.noLongerRefused ?? []), ...report.redis.hot]) {
    expect(text).not.toContain(identity)
    expect(text).not.toContain(`${identity.slice(identity.indexOf('=') + 1)}"`)
  }
  expect(text).not.toContain('10.0.0.5')
  expect(text).not.toContain('192.0.2.99')
})

test('a client has one pseudonym in all parts of a report, of its kind, and another in the next report', () => {
  const [first, next] = [withPseudonyms(sampleReport()), withPseudonyms(sampleReport())]
  const pseudonym = first.refused[0]?.identity
  expect(pseudonym).toMatch(/^ip~[\da-f]{10}$/)
  expect(first.against?.newlyRefused[0]?.identity).toBe(pseudonym)
  expect(first.refused[4]?.identity).toMatch(/^user~[\da-f]{10}$/)
  expect(first.caveats[2]).toContain(first.redis.hot[0]?.identity)
  expect(next.refused[0]?.identity).not.toBe(pseudonym)
  expect(new Set(first.refused.map(({ identity }) => identity)).size).toBe(24)
  expect(first.identities).toBe('pseudonyms')
})

test('sentences keep everything that is no identity', () => {
  const caveats = [
    'Windows below 3 s: 12:30:05 is 10 % of 1.5 million (a /64), see --client.',
    'user=ann and "2001:db8::/64" have 3 %; ::1.',
  ]
  const [plain, named] = withPseudonyms({ ...sampleReport(), caveats }).caveats
  expect(plain).toBe(caveats[0])
  expect(named).toMatch(/^user~[\da-f]{10} and "ip~[\da-f]{10}" have 3 %; ip~[\da-f]{10}\.$/)
})

test.each([
  ['/users/42', '/users/:number'],
  ['/users/42/posts/2026-11-26?token=secret', '/users/:number/posts/:number'],
  ['/search?q=ann#top', '/search'],
  ['/search%3Fq=ann', '/search'],
  ['/a;jsessionid=7F3A/b', '/a/b'],
  ['/reset/ann@example.com', '/reset/:email'],
  ['/reset/ann%40example.com/', '/reset/:email/'],
  ['/o/9B2C1D60-1f3e-4c5d-8a7b-0123456789ab', '/o/:uuid'],
  ['/from/192.0.2.7/and/2001:db8::1', '/from/:address/and/:address'],
  ['http://ann:secret@example.com/x/1', '/x/:number'],
  ['http://ann:secret@example.com', '/'],
  ['/proxy/http://ann:secret@example.com/', '/proxy/http://:email/'],
  ['/proxy/https%3A%2F%2Fexample.com%2F%3Fcode%3Dsecret', '/proxy/:url'],
  ['ann:secret@example.com:443', ':other'],
  ['\u0016\u0003\u0001', ':other'],
  ['*', '*'],
  ['', '/'],
  ['/invoices/invoice-2026-001234.pdf', '/invoices/invoice-:number-:number.pdf'],
  ['/u/user12345', '/u/user:number'],
  ['/assets/index-BxK3j9d2.js', '/assets/:token.js'],
  ['/assets/main.4f3a9c1b7d2e.min.js', '/assets/:token.min.js'],
  ['/cb/eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiI0MiJ9.dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk', '/cb/:token'],
  ['/1/2/3/4/5/6/7/8/9/10', `${'/:number'.repeat(8)}/…`],
  ['/%E4%zz/%c3%28', '/%E4%zz/%c3%28'],
  ['/users/ann%2540example.com', '/users/:email'],
])('the path of %j is shown as %j', (target, shown) => {
  expect(unnamedPath(target)).toBe(shown)
})

test.each([
  '/api/v2/items',
  '/.well-known/acme-challenge',
  '/blog/how-to-size-a-rate-limiter',
  '/wp-content/themes/twentytwentyfour/style.css',
  '/oauth2-callback/sha256/utf8',
  '/getUserProfileByAccountId',
  '/static/fonts/inter.woff2',
  '/internationalization/telecommunications',
])('the path %s stays as it is', (path) => {
  expect(unnamedPath(path)).toBe(path)
})

test('of ten thousand random tokens of each form, fewer than three in a thousand are shown', () => {
  const forms: Record<string, (n: number) => string> = {
    'hex of 16': (n) => bytes(n).toString('hex').slice(0, 16),
    'hex of 64': (n) => bytes(n).toString('hex'),
    'base64url of 22': (n) => bytes(n).toString('base64url').slice(0, 22),
    'base64url of 43': (n) => bytes(n).toString('base64url'),
    'base36 of 25': (n) =>
      BigInt(`0x${bytes(n).toString('hex')}`)
        .toString(36)
        .slice(0, 25),
  }
  for (const [form, tokenOf] of Object.entries(forms)) {
    const shown = Array.from({ length: 10_000 }, (_, n) => tokenOf(n)).filter((token) =>
      unnamedPath(`/reset/${token}`).includes(token),
    )
    expect(shown.length, `${form}: ${shown.slice(0, 5).join(' ')}`).toBeLessThan(30)
  }
})

test.each([
  ['bot/1.0 (+mailto:ops@example.com)', 'bot/1.0 (+mailto::email)'],
  ['curl/8.9 ann%40example.co.uk', 'curl/8.9 :email'],
  ['probe 192.0.2.7; via http://198.51.100.4:80/x', 'probe :address; via http://:address:80/x'],
  ['Mozilla/5.0 Chrome/120.0.0.0 Safari/537.36', 'Mozilla/5.0 Chrome/120.0.0.0 Safari/537.36'],
])('the agent %j is shown as %j', (agent, shown) => {
  expect(agentText(agent)).toBe(shown)
})

test('agents stay text, cut at 200 characters, never within a character', () => {
  expect(agentText('curl/8.5.0')).toBe('curl/8.5.0')
  expect(agentText(`${'a'.repeat(199)}😀`)).toBe(`${'a'.repeat(199)}…`)
})
