// Release: runs examples.
import { getIntrospectionQuery } from 'graphql'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Running, startOnPorts } from './programs.js'

let running: Running
beforeAll(async () => {
  running = await startOnPorts('graphql/express.js')
})
afterAll(async () => {
  expect(await running.program.end('SIGTERM')).toBe(0)
})

/** Posts a body with a key, whose tenant has budgets of its own. */
async function post(body: string, key: string) {
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
  const response = await fetch(`${running.url}/graphql`, { method: 'POST', headers, body })
  const [, minute, day] = /"minute";r=(\d+).*"day";r=(\d+)/.exec(response.headers.get('ratelimit') ?? '') ?? []
  const text = await response.text()
  expect(text).not.toMatch(/node_modules|examples/)
  return { status: response.status, text, headers: response.headers, left: [Number(minute), Number(day)] }
}

test('a query costs its points in both windows, or in none', async () => {
  const ask = (query: string, more = {}) => post(JSON.stringify({ query, ...more }), 'key-of-ann')
  const first = await ask('{ users(first: 2) { name posts(first: 3) { title author { name } } } }')
  // 2 users, each with a name and 3 posts, each with a title, an author and that author's name.
  const cost = 2 * (1 + 1 + 3 * (1 + 1 + 1 + 1))
  expect([first.status, first.left]).toEqual([200, [500 - cost, 2000 - cost]])
  expect(JSON.parse(first.text)).toMatchObject({ data: { users: [{ name: 'user 0' }, {}] }, extensions: { cost } })
  const refused = await ask('{ users(first: 100) { name posts(first: 2) { title } } }')
  expect([refused.status, refused.left]).toEqual([429, first.left])
  const soon = await ask('{ users { posts(first: 24) { title } } }')
  expect([soon.status, soon.left]).toEqual([429, first.left])
  expect(Number(soon.headers.get('retry-after'))).toBeGreaterThan(0)
  expect((await post('{', 'made-up')).status).toBe(401)
})

test('nothing makes a query look cheaper than it is', async () => {
  const ask = (query: string, more = {}) => post(JSON.stringify({ query, ...more }), 'key-of-bob')
  // Doubled by each of 40 fragments.
  const bomb = Array.from({ length: 20 }, (_, n) => `fragment f${n} on User { posts { author { ...f${n + 1} } } }`)
  const dear: [string, object?][] = [
    [`{ ${Array.from({ length: 60 }, (_, n) => `a${n}: users { name }`).join(' ')} }`],
    ['query ($n: Int = 100) { users(first: $n) { posts { title } } }'],
    ['query ($n: Int = 1) { users(first: $n) { posts { title } } }', { variables: { n: 100 } }],
    ['{ users(first: 2147483647) { posts { title } } }'],
    ['{ ... on Query { ...all } } fragment all on Query { users(first: 100) { posts { title } } }'],
    [`{ users { ...f0 } } ${bomb.join(' ')} fragment f20 on User { name }`],
    ['query cheap { users { name } } query dear { users(first: 100) { posts { title } } }', { operationName: 'dear' }],
  ]
  for (const [query, more] of dear) {
    const { status, left, headers } = await ask(query, more)
    expect([status, left, headers.get('retry-after')], query).toEqual([429, [500, 2000], null])
  }
})

test('requests that cannot be read or are invalid cost a point or more, and get 400', async () => {
  const query = '{ users { name } }'
  const deep = '{ users '.repeat(2000)
  const bodies = [
    '{',
    'null',
    JSON.stringify([{ query }, { query }]),
    JSON.stringify({ query: '{ users {' }),
    JSON.stringify({ query: deep }),
    JSON.stringify({ query: '{ users { ...a } } fragment a on User { posts { author { ...a } } }' }),
    JSON.stringify({ query: '{ users { ...missing } }' }),
    JSON.stringify({ query: 'query ($n: Int) { users(first: $n) { name } }', variables: { n: 'many' } }),
    JSON.stringify({ query: 'query a { users { name } } query b { users { name } }' }),
    JSON.stringify({ query: 'subscription { users { name } }' }),
    JSON.stringify({ query: '{ unknown }' }),
    JSON.stringify({ query: getIntrospectionQuery() }),
    JSON.stringify({ query, operationName: {}, variables: 5 }),
  ]
  let left = 500
  for (const body of bodies) {
    const { status, left: after, text } = await post(body, 'key-of-cid')
    expect([status, after[0]], text).toEqual([400, --left])
    expect(JSON.parse(text).errors[0].message).toMatch(/\w/)
  }
  expect((await post(JSON.stringify({ query, more: 'x'.repeat(20_000) }), 'key-of-cid')).status).toBe(413)
})
