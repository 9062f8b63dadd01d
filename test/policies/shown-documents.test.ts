import { policies } from '@sluice/policies'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { LineCounter, parse, parseDocument } from 'yaml'
import type { ShownDocument } from '../../packages/policies/src/document/shown-document.js'

const SECRET = 'secret-of-a-client'

async function shown(object: object): Promise<ShownDocument> {
  const document = await policies.from({ object: object as never, tiers: { plan: () => 'free' } })
  try {
    return (document as unknown as { shown(): ShownDocument }).shown()
  } finally {
    await document.close()
  }
}

/** Texts that YAML takes for something else, or for several lines, unless they are quoted. */
const text = fc.oneof(
  fc.constantFrom(
    'yes',
    'null',
    '~',
    '1e3',
    '12:30',
    '0x1f',
    '# no',
    '- a',
    'a: b',
    "it's",
    '"',
    '*',
    '&a',
    'two\nlines',
    ' ',
    '',
  ),
  fc.string({ unit: 'grapheme', maxLength: 30 }),
)
const limit = fc.record({ limit: fc.integer({ min: 1, max: 1e6 }), window: fc.constantFrom('1s', '15m', '1h', 60_000) })
const limits = fc.uniqueArray(limit, { minLength: 1, maxLength: 3, selector: ({ window }) => window })
const policy = fc.oneof(
  fc.record({ description: text, limits }),
  fc.record({ match: fc.constant({ paths: ['/orders/:id', '/a/*'], methods: ['GET'] }), description: text, limits }),
  fc.record({ tier: fc.constant('plan'), tiers: fc.record({ free: limits, paid: limits }) }),
)
const names = fc.constantFrom('api', 'login', 'yes', '1', 'constructor', 'a-b_c')
const documents = fc.dictionary(names, policy, { minKeys: 1 }).map((all) => ({ version: 1, policies: { ...all } }))

test('the YAML of a document is the document, and each limit is at its line', async () => {
  await fc.assert(
    fc.asyncProperty(documents, async (document) => {
      const { text, lines, left } = await shown(document)
      expect(parse(text)).toEqual(document)
      expect(left).toBe(0)
      const counter = new LineCounter()
      const nodes = parseDocument(text, { lineCounter: counter })
      const lineOf = (path: (string | number)[]) => {
        const node = nodes.getIn(path, true) as { range: [number, number, number] }
        return counter.linePos(node.range[0]).line
      }
      const expected = Object.entries(document.policies).flatMap(([name, each]) => {
        const lists = 'tiers' in each ? Object.entries(each.tiers) : [['', each.limits] as const]
        return lists.map(([tier, own]) => {
          const at = tier === '' ? ['policies', name, 'limits'] : ['policies', name, 'tiers', tier]
          return [tier === '' ? name : `${name}.${tier}`, own.map((_, i) => lineOf([...at, i]))]
        })
      })
      expect(lines).toEqual(Object.fromEntries(expected))
    }),
  )
})

test('the YAML has no client, and no value of a header', async () => {
  const limits = [{ limit: 5, window: '1h' }]
  const { text } = await shown({
    version: 1,
    policies: {
      api: {
        key: 'ip',
        match: { paths: ['/a'], headers: { 'x-token': SECRET } },
        limits,
        allow: { ip: ['192.0.2.77'] },
        deny: { ip: ['192.0.2.78'] },
      },
    },
    overrides: [{ policy: 'api', key: { ip: '192.0.2.79' }, limits: [{ limit: 6 }], reason: SECRET }],
  })
  expect(text).not.toMatch(/192\.0\.2|secret/)
  expect(parse(text).policies.api).toEqual({
    key: 'ip',
    match: { paths: ['/a'], headers: 'not shown' },
    limits,
    allow: 'not shown',
    deny: 'not shown',
  })
})

test('of a long document, the YAML has the first policies, and says how many it leaves out', async () => {
  const each = { limits: [{ limit: 5, window: '1h' }] }
  const all = Object.fromEntries(Array.from({ length: 2000 }, (_, i) => [`policy-${i}`, each]))
  const { text, lines, left } = await shown({ version: 1, policies: all })
  expect(text.length).toBeLessThanOrEqual(16_500)
  const { policies: kept } = parse(text)
  expect(kept).toEqual(Object.fromEntries(Object.entries(all).slice(0, 2000 - left)))
  expect(Object.keys(lines)).toEqual(Object.keys(kept))
  expect(left).toBeGreaterThan(1000)
})
