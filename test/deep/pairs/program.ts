import { type Case, type Event, hasReserve, type LimitOf, type PolicyOf, type Request } from './case.js'
import { HAS } from './features.js'
import { documentOf } from './product.js'

/** A case as a program that can be pasted into a file beside packages of ours, and prints each step. Over HTTP it is a test beside this file. */
export function programOf(of: Case): string {
  if (of.server)
    return [
      "import { memoryStore } from '@sluice/core'",
      "import { test } from 'vitest'",
      "import { run } from './run.js'",
      '',
      `const of = ${text(of)}`,
      "test('one case', async () => void (await run(of as never, (clock) => memoryStore({ clock }))))",
    ].join('\n')
  const steps = of.events.flatMap((event) => {
    const [first = '', ...rest] = stepsOf(event, of)
    return 'at' in event && event.at ? [`${first} // in process ${event.at}`, ...rest] : [first, ...rest]
  })
  return [...headOf(of), ...steps, 'await store.close()'].join('\n')
}

function headOf(of: Case): string[] {
  const keep = of.keep === undefined ? '' : `, charges: { keep: ${of.keep} }`
  const charges = of.unavailable ? `${keep}, unavailable: ${text(of.unavailable)}` : keep
  const head = [
    "import * as core from '@sluice/core'",
    "import { createGuard } from '@sluice/core/http'",
    "import { policies } from '@sluice/policies'",
    "import { EventEmitter } from 'node:events'",
    '',
    'let now = 20_000 * 86_400_000',
    `const made = core.memoryStore({ clock: () => now }) // or core.redisStore(client, { clock: () => now, denyCache: ${of.denyCache ?? false} })`,
    HAS.outages(of)
      ? 'const store = withOutages(made) // of test/deep/pairs/store-that-fails.ts'
      : 'const store = made',
    "const KEYS = { client: core.keyed('client', ({ client }) => client), tenant: core.keyed('tenant', ({ tenant }) => tenant), everyone: core.everyone() }",
    'class Asked { constructor(fields) { Object.assign(this, fields) } }',
    'const held = []',
  ]
  if (of.way === 'limiter')
    return [
      ...head,
      `const limiter = core.createLimiter({ name: 'p', store, ${optionsText(of.policies[0] as PolicyOf)}${charges} })`,
      ...ASK_LIMITER,
    ]
  if (of.way === 'rateLimit') {
    const options = optionsText(of.policies[0] as PolicyOf)
    return [
      ...head,
      `const guard = createGuard({ name: 'p', store, ${options}${charges}, cost: ({ cost }) => cost })`,
      ...ASK_GUARD,
    ]
  }
  const costs = of.policies.map(({ times = 1 }, p) =>
    ['tokens', 'cents'].map((unit) => `'p${p}-${unit}': ({ cost }) => ${times} * (cost.${unit} ?? 0)`),
  )
  return [
    ...head,
    `const loaded = await policies.from({ object: ${text({ version: 1, ...documentOf(of) })}, keys: { client: ({ client }) => client, tenant: ({ tenant }) => tenant }, tiers: { tier: ({ tier }) => tier }, costs: { ${costs.flat().join(', ')} } })`,
    `const guard = createGuard({ policies: loaded, store${charges} })`,
    ...ASK_GUARD,
  ]
}

const ASK_LIMITER = [
  'async function ask(request) {',
  '  const verdict = await limiter.consume(request, { cost: request.cost })',
  '  console.log(verdict)',
  '  if (verdict.allowed) held.push({ verdict, request })',
  '}',
]

const ASK_GUARD = [
  'const { limiter } = guard',
  'async function ask(fields) {',
  '  const [request, response] = [new Asked(fields), Object.assign(new EventEmitter(), { statusCode: 200, headersSent: true })]',
  '  const none = () => undefined',
  "  const { proceed, verdict } = await guard({ request, response, method: 'GET', path: '/', target: '/', header: none, signedCookie: none, getResponseHeader: none })",
  '  console.log(proceed, verdict)',
  '  if (proceed && verdict) held.push({ verdict, request, response })',
  '}',
]

function optionsText({ limits, tiers, allow, deny, ban, ...rest }: PolicyOf): string {
  const all = (made: readonly LimitOf[]) => `[${made.map(limitText).join(', ')}]`
  const parts = [
    'key: KEYS.client',
    ...(limits ? [`limits: ${all(limits)}`] : []),
    ...(tiers
      ? [
          `tiers: { ${Object.entries(tiers)
            .map(([tier, made]) => `${tier}: ${all(made)}`)
            .join(', ')} }`,
          'tier: ({ tier }) => tier',
        ]
      : []),
    ...(hasReserve({ limits, tiers }) ? ['priority: ({ priority }) => priority'] : []),
    ...(allow ? [`allow: core.list({ client: ${text(allow)} })`] : []),
    ...(deny ? [`deny: core.list({ client: ${text(deny)} })`] : []),
    ...(ban ? [`ban: ${text({ by: 'client', ...ban })}`] : []),
    ...Object.entries(rest).map(([name, value]) => `${name}: ${text(value)}`),
  ]
  return parts.join(', ')
}

function limitText({ algorithm, key, ...options }: LimitOf): string {
  return `core.${algorithm}(${text(options).replace(/ \}$/, key ? `, key: KEYS.${key} }` : ' }')})`
}

function stepsOf(event: Event, of: Case): string[] {
  if (event.do === 'wait')
    return [
      `now += ${event.ms === 'retry' ? `0 // retryAfterMs of the last verdict, less ${event.early ?? 0}` : event.ms}`,
    ]
  if (event.do === 'outage' || event.do === 'return') return [`store.isAway = ${event.do === 'outage'}`]
  if (event.do === 'exchange') return [`// all processes exchange their relaxed counts`]
  if (event.do === 'request') {
    const asked = `await ask(${text(requestOf(event))})`
    return [event.times === undefined ? asked : `for (let n = 0; n < ${event.times}; n++) ${asked}`]
  }
  if (event.do === 'peek')
    return [`console.log(await limiter.peek(${subjectText(requestOf(event), of)}, ${text({ cost: event.cost })}))`]
  if (event.do === 'block') return [`await limiter.block({ client: '${event.client}' }, { for: ${event.ms} })`]
  if (event.do === 'reset')
    return [
      `await limiter.reset(${of.way === 'limiter' ? text({ client: event.client, tenant: 'a', tier: 'free' }) : `{ client: '${event.client}' }`})`,
    ]
  if (event.do === 'unblock' || event.do === 'strike')
    return [`await limiter.${event.do}({ client: '${event.client}' })`]
  const one = `held[${event.which} % held.length]`
  const byId = 'byId' in event && event.byId && of.keep !== undefined
  if (event.do === 'settle')
    return [
      byId
        ? `await limiter.settle(${one}.verdict.id, ${text(event.units)})`
        : `await ${one}.verdict.settle(${text(event.units)})`,
    ]
  if (event.do === 'refund')
    return [byId ? `await limiter.refund(${one}.verdict.id)` : `await limiter.refund(${one}.request, ${one}.verdict)`]
  if (event.do === 'release' || event.do === 'renew')
    return [`await limiter.${event.do}(${one}.verdict${byId ? '.id' : ''})`]
  if (event.do === 'end')
    return [
      `${one}.response.statusCode = ${event.status}`,
      `${one}.response.emit('finish')`,
      'await new Promise(setImmediate)',
    ]
  if (event.do !== 'meter') return []
  const { unit, length, step, onExhausted, total } = event
  return [
    `const meter = ${one}.verdict.meter('${unit}', ${text({ step, onExhausted })})`,
    `for (let n = 0; n < ${length}; n++) if (!(await meter.add(1))) break`,
    total === undefined ? 'await meter.end()' : `await ${one}.verdict.settle({ ${unit}: ${total} })`,
  ].map((line, i, all) => (i === 0 ? `{ ${line}` : i === all.length - 1 ? `${line} }` : line))
}

function requestOf(event: Extract<Event, { do: 'request' | 'peek' }>): Request {
  const { do: _, at: __, times: ___, ...request } = { times: 1, ...event }
  return request
}

function subjectText(request: Request, { way }: Case): string {
  return way === 'limiter' ? text(request) : `new Asked(${text(request)})`
}

/** Data as JavaScript, on one line. */
function text(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(text).join(', ')}]`
  if (typeof value !== 'object' || value === null) return typeof value === 'string' ? `'${value}'` : String(value)
  const fields = Object.entries(value).map(
    ([name, each]) => `${/^[a-z]\w*$/i.test(name) ? name : `'${name}'`}: ${text(each)}`,
  )
  return fields.length === 0 ? '{}' : `{ ${fields.join(', ')} }`
}
