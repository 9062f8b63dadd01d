import { type ProposalReport, pageOf, propose } from '@sluice/simulate'
import { expect, test } from 'vitest'
import { filesOf, line } from './support.js'

/** Client n comes n times within a second, over two minutes. */
function crowd(clients: number): string {
  return Array.from({ length: clients }, (_, i) => [3 * i, i + 1] as const)
    .flatMap(([second, n]) =>
      Array.from({ length: n }, () => line(second, `192.0.2.${n}`, `/items/${n}`, 200, 'curl/8.9')),
    )
    .concat(line(121, '192.0.2.1', '/<b>', 404, 'Mozilla/5.0'))
    .join('')
}

function proposed(): Promise<ProposalReport> {
  return propose({
    logs: [filesOf({ 'access.log': crowd(40) })['access.log']],
    good: ['192.0.2.23'],
    identities: 'plain',
  })
}

const textIn = (markup: string) => markup.replace(/<[^>]*>/g, ' ').replace(/\s+/g, ' ')

test('the page begins with the limit, and who would be refused', async () => {
  const page = pageOf(await proposed())
  const [main = ''] = /<main>.*?<fieldset/s.exec(page) ?? []
  expect(textIn(main)).toContain(
    '23 requests per minute and client Limit each client to 23 requests per minute: enforced, that refuses 153 of 821 requests (19 %), of 17 of 40 clients. Farthest above a limit: ip=192.0.2.40 , 40 requests per minute; ip=192.0.2.39 , 39 requests per minute; ip=192.0.2.38 , 38 requests per minute; more .',
  )
})

test('the line of the limit can be moved, and each place says whom it refuses', async () => {
  const page = pageOf(await proposed())
  const places = [...page.matchAll(/class="step-(\d+)"( checked)?><label [^>]*>([\d,]+)<\/label>/g)]
  expect(places.find(([, , checked]) => checked)?.[3]).toBe('23')
  for (const [, i, , limit] of places) {
    const refused = Math.max(0, 40 - Number(limit))
    const [, effect] = new RegExp(`<p class="at at-${i}">([^<]*)</p>`).exec(page) ?? []
    const whom =
      refused === 0 ? 'none of 40 clients' : `${refused} of 40 clients (${Math.round(refused * 2.5 * 10) / 10} %)`
    expect(effect?.replace(/ \([^)]*\)/, '')).toBe(
      `A limit of ${limit} alone refuses ${whom.replace(/ \([^)]*\)/, '')}${Number(limit) < 23 ? ', of which 1 is good' : ''}.${limit === '23' ? '' : ` To use it, write limit: ${limit} for window: 1m in policy all.`}`,
    )
    expect(page).toContain(`<g class="at at-${i}">`)
    expect(page).toContain(`.step-${i}:checked ~ .at-${i}`)
  }
})

test('the page has clients above and below the limits, the document, and splits', async () => {
  const report = await proposed()
  const page = pageOf(report)
  for (const id of ['above', 'below', 'limits', 'document', 'good', 'splits']) {
    expect(page).toContain(`href="#${id}"`)
    expect(page).toContain(`<h2 id="${id}">`)
  }
  expect(textIn(page)).toContain('ip=192.0.2.40 17 40 in 1m 23 40 /items/:number curl/8.9')
  expect(textIn(page)).toContain('ip=192.0.2.23 (good) 23 in 1m 23 23')
  expect(textIn(page)).toContain('- { limit: 23, window: 1m } # 17 in the log above it')
  expect(report.splits).toMatchObject({
    byPaths: [
      { name: '/items/**', requests: 820, refused: 153 },
      { name: 'other', requests: 1, refused: 0 },
    ],
    byStatus: [
      { name: '200', requests: 820, refused: 153 },
      { name: '404', requests: 1 },
    ],
    byClient: [
      { name: 'programs', requests: 820, refused: 153 },
      { name: 'browsers', requests: 1 },
    ],
  })
})
