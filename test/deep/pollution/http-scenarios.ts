import {
  concurrency,
  degrade,
  delay,
  escalate,
  fixedWindow,
  list,
  pass,
  queue,
  reject,
  type Store,
  shadow,
  tarpit,
  tokenBucket,
  trap,
} from '@sluice/core'
import { policies } from '@sluice/policies'
import type { Scenario } from './compared.js'
import { APPS, type Connection, type MakeApp } from './http-apps.js'

const WINDOW = { limit: 2, window: '1m', key: byUser } as const
const USERS = ['a', 'a', 'a', 'b', 'a', 'listed', 'denied']

/** Options of `rateLimit`, and the requests that are sent: a path and a user. */
interface Limits {
  readonly options: () => object | Promise<object>
  readonly requests: readonly (readonly [path: string, user: string])[]
}

const SAME = USERS.map((user) => ['/', user] as const)
const responders = {
  reject: () => reject({ status: 503, body: { error: 'busy' } }),
  shadow: () => shadow({ status: 201, body: { ok: true }, headers: { 'X-Shadow': 'x' } }),
  degrade: () => degrade(),
  'delay that is too long': () => delay({ max: '1s' }),
  'queue that is too long': () => queue({ maxWait: '1s' }),
  tarpit: () => tarpit({ for: 1 }),
  pass: () => pass(),
  escalate: () => escalate([reject(), shadow()]),
  'own reply': () => () => ({ status: 420, headers: [['X-Own', 'x']], body: 'own', showsQuota: true }),
}

const LIMITS: Readonly<Record<string, Limits>> = {
  'exact log': { options: () => ({ ...WINDOW }), requests: SAME },
  'several limits': {
    options: () => ({
      key: byUser,
      limits: [fixedWindow({ limit: 2, window: '1m' }), tokenBucket({ refill: 3, every: '1h' })],
    }),
    requests: SAME,
  },
  ban: { options: () => ({ ...WINDOW, ban: { after: 1, within: '1m', for: ['1h'] } }), requests: SAME },
  lists: {
    options: () => ({ ...WINDOW, allow: list({ key: ['listed'] }), deny: list({ key: ['denied'] }) }),
    requests: [...SAME, ['/', 'listed'], ['/', 'listed'], ['/', 'listed']],
  },
  'count by outcome': {
    options: () => ({ ...WINDOW, count: { only: 'failure' } }),
    requests: [...SAME, ['/401', 'c'], ['/401', 'c'], ['/401', 'c'], ['/', 'c']],
  },
  permits: { options: () => ({ key: byUser, limits: [concurrency({ limit: 1 })] }), requests: SAME },
  trap: {
    options: () => ({ ...WINDOW, ban: { trap: trap(['/.env']), after: 1, within: '1m', for: ['1h'] } }),
    requests: [['/.env', 'a'], ...SAME],
  },
  'without a user': {
    options: () => ({ ...WINDOW, anonymous: 'by-ip' }),
    requests: SAME.map(() => ['/', ''] as const),
  },
  report: { options: () => ({ ...WINDOW, enforce: { mode: 'report' } }), requests: SAME },
  document: {
    options: async () => ({
      policies: await policies.from({
        object: {
          version: 1,
          policies: {
            pages: { key: 'header:x-user', limits: [{ limit: 2, window: '1m' }] },
            ones: {
              match: { paths: ['/ones'] },
              key: 'header:x-user',
              limits: [{ algorithm: 'fixedWindow', limit: 1, window: '1m' }],
            },
          },
        },
      }),
    }),
    requests: [...SAME, ['/ones', 'd'], ['/ones', 'd']],
  },
  ...Object.fromEntries(
    Object.entries(responders).map(([name, respond]) => [
      name,
      { options: () => ({ ...WINDOW, respond: respond() }), requests: SAME },
    ]),
  ),
}

/** Scenarios of every framework, over one connection. */
export function httpScenarios(connection: Connection, legend = LIMITS): Scenario[] {
  return Object.entries(APPS).flatMap(([framework, makeApp]) =>
    Object.entries(legend).map(([name, { options, requests }]) => {
      const without = scenario(connection, `${framework} alone`, makeApp, undefined, requests)
      return { ...scenario(connection, `${framework}: ${name}`, makeApp, options, requests), without }
    }),
  )
}

function scenario(
  connection: Connection,
  name: string,
  makeApp: MakeApp,
  options: Limits['options'] | undefined,
  requests: Limits['requests'],
): Scenario {
  return {
    name,
    make: async (store: Store) => makeApp(options && { store, ...(await options()) }),
    use: async (app, note) => {
      connection.app = app as never
      for (const [path, user] of requests) note(shown(await connection.get(path, user && `X-User: ${user}\r\n`)))
    },
    without: undefined,
  }
}

/** A response without what differs by time. */
function shown(response: string): string {
  return response.replace(/\r\nDate: [^\r]*/i, '').replaceAll('\r\n', '\n')
}

function byUser({ headers }: { readonly headers: Readonly<Record<string, string>> }): string | undefined {
  return Object.hasOwn(headers, 'x-user') ? headers['x-user'] : undefined
}
