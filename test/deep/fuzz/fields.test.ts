import { EventEmitter } from 'node:events'
import { type HeadersOption, type Limit, memoryStore, reject } from '@sluice/core'
import { createGuard } from '@sluice/core/http'
import fc from 'fast-check'
import { type Item, parseDictionary, parseItem, parseList } from 'structured-headers'
import { contextOf } from '../../support/context.js'
import { must } from './support/errors.js'
import { fuzz } from './support/fuzz.js'
import { text } from './support/hostile.js'
import { limits } from './support/limits.js'
import { expectSane } from './support/verdicts.js'

const FORMS: readonly HeadersOption[] = [
  'draft-11',
  'draft-8',
  'draft-7',
  'draft-6',
  'legacy',
  { format: 'legacy', reset: 'epoch-ms' },
  { format: 'legacy', reset: 'delta-seconds' },
  ['draft-11', 'legacy'],
]

const LARGEST = 999_999_999_999_999
const isInteger = (value: unknown) => Number.isInteger(value) && (value as number) >= 0 && (value as number) <= LARGEST

/** Checks the value of a field with a parser of structured fields. */
function checkField(name: string, value: string, form: HeadersOption, names: ReadonlySet<string>): void {
  must(/^[\x20-\x7e]*$/.test(value), 'a printable field', [name, value])
  if (name === 'Retry-After') return must(/^[1-9]\d{0,14}$/.test(value), 'whole seconds, one at least', value)
  const isList = form === 'draft-11' || form === 'draft-8' || Array.isArray(form)
  if (name === 'RateLimit-Policy') {
    for (const [policy, parameters] of parseList(value) as Item[]) {
      if (isList) must(names.has(policy as string), 'the name of a limit', policy)
      const q = isList ? parameters.get('q') : policy
      const w = parameters.get('w')
      must(isInteger(q), 'a quota', value)
      must(w === undefined || (isInteger(w) && w !== 0), 'a window of a second or more', value)
      const unit = parameters.get('qu')
      must(unit === undefined || unit === 'content-bytes' || unit === 'concurrent-requests', 'a unit', value)
    }
  } else if (name === 'RateLimit' && isList) {
    for (const [policy, parameters] of parseList(value) as Item[]) {
      const t = parameters.get('t')
      must(names.has(policy as string), 'the name of a limit', policy)
      must(
        isInteger(parameters.get('r')) && (t === undefined || isInteger(t)),
        'the remaining units and the reset time',
        value,
      )
    }
  } else if (name === 'RateLimit') {
    const fields = parseDictionary(value)
    must([...fields.keys()].join() === 'limit,remaining,reset', 'three members', value)
    for (const [number] of fields.values()) must(isInteger(number), 'a whole number', value)
  } else if (/^(X-)?RateLimit-/.test(name)) must(isInteger((parseItem(value) as Item)[0]), 'a whole number', value)
}

const cost = fc.oneof(fc.nat(4), fc.nat(12), fc.constantFrom(2 ** 40, 2 ** 53 - 1))

fuzz('fields', 'fields of any policy and verdict are valid structured fields', {
  inputs: fc.record({
    limits,
    policy: fc.stringMatching(/^[A-Za-z0-9_-]{1,64}$/),
    headers: fc.constantFrom(...FORMS),
    onDeny: fc.constantFrom('none' as const, 'charge' as const),
    steps: fc.array(fc.record({ cost, passedMs: fc.constantFrom(0, 1, 999, 1001, 60_000, 2 ** 31) }), {
      minLength: 1,
      maxLength: 6,
    }),
  }),
  async check({ limits, policy, headers, onDeny, steps }) {
    const clock = { now: 1_700_000_000_000 }
    const store = memoryStore({ clock: () => clock.now })
    let units = 0
    const response = new EventEmitter().setMaxListeners(0)
    const isBytes = limits.some((limit: Limit) => limit.unit === 'content-bytes')
    const guard = createGuard<unknown>({
      ...{ name: policy, store, limits, headers, onDeny, key: () => 'k', cost: () => units },
      ...(isBytes && { body: { max: 10 } }),
    })
    try {
      for (const { cost, passedMs } of steps) {
        clock.now += passedMs
        units = cost
        const coming = guard(contextOf({ response }))
        // Only a turn in a queue makes it wait, perhaps for years.
        if (coming instanceof Promise) response.emit('close')
        const { verdict, proceed, reply, headers: fields } = await coming
        if (!verdict) throw new Error('expected a verdict')
        expectSane(verdict)
        const names = new Set(verdict.limits.map(({ name }) => name))
        must(names.size === limits.length, 'a name for each limit', verdict)
        for (const [name, value] of fields) checkField(name, value, headers, names)
        if (coming instanceof Promise) {
          must(
            verdict.reason === 'left' && !proceed && !reply && fields.length === 0,
            'no response for a client that has left',
            verdict,
          )
          continue
        }
        const refusable = !verdict.allowed && verdict.reason !== 'impossible'
        must(fields.some(([name]) => name === 'Retry-After') === refusable, 'a retry time', fields)
      }
    } finally {
      // Otherwise permits would be renewed for ever.
      response.emit('close')
      await store.close()
    }
  },
})

const MARK = 'MARK-7f3a'

fuzz('fields', 'refusals return nothing from a request or a block, and are valid for any Accept field', {
  inputs: fc.record({ key: text, accept: text, reason: text, path: text, blocked: fc.boolean(), more: fc.nat(3) }),
  async check({ key, accept, reason, path, blocked, more }) {
    const guard = createGuard<unknown>({
      name: 'fuzz',
      limit: 0,
      window: '1m',
      key: () => MARK + key,
      respond: reject(),
    })
    const marked = MARK + reason
    if (blocked) await guard.limiter.block(MARK + key, { for: '1h', reason: marked.slice(0, 200) })
    const types = ['', 'application/json;q=', 'text/plain, ', '*/*;q=0,']
    const headers = { accept: types[more] + accept + MARK, cookie: marked, 'x-forwarded-for': marked }
    const { headers: fields, reply } = await guard(contextOf({ headers, path: `/${path}${MARK}`, ip: marked }))
    must(reply?.status === 429 && typeof reply.body === 'string', 'a refusal', reply)
    const body = String(reply?.body)
    for (const [name, value] of fields) {
      must(/^[\x20-\x7e]*$/.test(name + value) && !`${name}${value}`.includes(MARK), 'a header of our own', [
        name,
        value,
      ])
    }
    must(!body.includes(MARK), 'a body of our own', body)
    const type = fields.find(([name]) => name === 'Content-Type')?.[1]
    const isJson = type === 'application/problem+json; charset=utf-8'
    must(isJson || type === 'text/plain; charset=utf-8', 'JSON or text', type)
    must(
      isJson ? (JSON.parse(body) as { status: number }).status === 429 : !body.startsWith('{'),
      'the refusal in its body',
      body,
    )
    const length = fields.find(([name]) => name === 'Content-Length')?.[1]
    must(length === String(Buffer.byteLength(body)), 'its length', length)
  },
})
