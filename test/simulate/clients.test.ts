import { expect, test } from 'vitest'
import { sluice } from '../cli/support.js'
import { filesOf, line, policyOf, simulated } from './support.js'

const PER_MINUTE = policyOf({ limit: 2, window: '1m' })
const LINES = [0, 1, 2, 10].map((second) => line(second, '192.0.2.7').trimEnd())

/** What collectors write before a line. The sources are beside the patterns in prefixes.ts. */
const PREFIXED: readonly (readonly [name: string, write: (line: string) => string])[] = [
  ['syslog', (text) => `<190>Mar  1 12:00:00 web-1 nginx: ${text}`],
  ['syslog', (text) => `Mar  1 12:00:00 web-1 nginx[123]: ${text}`],
  ['syslog', (text) => `2026-03-01T12:00:00.123456+00:00 web-1 nginx: ${text}`],
  [
    'syslog',
    (text) => `<165>1 2026-03-01T12:00:00.003Z host.example nginx 123 ID47 [a@1 b="c\\]d"][e@1 f="g"] ${text}`,
  ],
  ['syslog', (text) => `<165>1 2026-03-01T12:00:00.003Z host.example nginx - - - ${text}`],
  ['Docker Compose', (text) => `web-1  | ${text}`],
  ['Docker Compose and a time', (text) => `web-1  | 2026-03-01T12:00:00.123456789Z ${text}`],
  ['CRI', (text) => `2026-03-01T12:00:00.123456789+00:00 stdout F ${text}`],
  ['kubectl', (text) => `[pod/web-5d9c/nginx] ${text}`],
  ['a time', (text) => `2026-03-01T12:00:00.123456789Z ${text}`],
  ['quotes', (text) => `"${text}"`],
  ['quotes', (text) => `'${text}'`],
  ['quotes', (text) => JSON.stringify(text)],
  ['quotes', (text) => `"${text.replaceAll('"', '""')}"`],
]

test.each(PREFIXED)('a prefix of %s is taken off, and clients are those of the log behind it', async (name, write) => {
  const { report } = await simulated(`${LINES.map(write).join('\n')}\n`, PER_MINUTE)
  expect(report).toMatchObject({
    log: { formats: [`combined behind ${name}`], unread: { count: 0 } },
    clients: { seen: 1, refused: 1 },
    refused: [{ identity: 'ip=192.0.2.7', requests: 4, refused: 2, agent: 'curl/8.9' }],
  })
})

test('a prefix before JSON, or before lines of a given format, is taken off', async () => {
  const json = LINES.map((_, i) => `web-1  | {"at":${1772323200.5 + i},"client":"192.0.2.7:4711","url":"/"}\n`).join('')
  const fields = '{"time":".at","ip":".client","target":".url"}'
  expect((await simulated(json, PER_MINUTE, ['--format', fields])).report.refused).toMatchObject([{ refused: 2 }])
  const text = LINES.map((text) => `Mar  1 12:00:00 web-1 nginx: ${text}\n`).join('')
  const format =
    '$remote_addr - $remote_user [$time_local] "$request" $status $body_bytes_sent "$http_referer" "$http_user_agent"'
  expect((await simulated(text, PER_MINUTE, ['--format', format])).report.refused).toMatchObject([
    { identity: 'ip=192.0.2.7', refused: 2 },
  ])
})

async function played(log: string, document: object, ...args: string[]) {
  const files = filesOf({ 'access.log': log, 'policies.json': JSON.stringify(document) })
  return sluice(['simulate', files['access.log'], '--document', files['policies.json'], ...args])
}

test('a log whose clients are no addresses is an error that names the field, where a limit counts by address', async () => {
  const log = [0, 1, 2].map((second) => line(second, 'crawl-66.example.com')).join('')
  const { code, stdout, stderr } = await played(log, PER_MINUTE)
  expect([code, stdout]).toEqual([2, ''])
  expect(stderr).toContain(
    'policy "api" counts by the client\'s address, but 100 % of the requests have none in the field remote_addr, ' +
      'such as "crawl-66.example.com": --client FIELD names another field, --format the format, and --lenient accepts that',
  )
  expect((await played(log, PER_MINUTE, '--lenient')).code).toBe(0)
  const byUser = policyOf({ limit: 2, window: '1m', key: 'user' })
  expect((await played(log.replaceAll('- -', '- ann'), byUser)).code).toBe(0)
})

test('at most 1 % of the lines may have a client that is no address', async () => {
  const lines = (wrong: number) =>
    Array.from({ length: 200 }, (_, i) => line(i, i < 200 - wrong ? '192.0.2.7' : 'unix:')).join('')
  expect((await played(lines(2), PER_MINUTE)).code).toBe(0)
  const { code, stderr } = await played(lines(3), PER_MINUTE)
  expect(code).toBe(2)
  expect(stderr).toContain('1.5 % of the requests have none in the field remote_addr, such as "unix:"')
})
