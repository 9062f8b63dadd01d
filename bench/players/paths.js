// Requests whose paths are matched against policies that are data. The packages are those of any checkout.
import { answer } from '../lib/child.js'

const SPELLINGS = {
  plain: ['/api/things/search', '/users/7/reset', '/login', '/elsewhere/there'],
  odd: ['//API//things/%73earch', '/Users//7/./reset;a=b', '/a/../login;v=1', '/elsewhere;x/%61/../b;c'],
}

const NOTHING = () => undefined

/** As those of adapters: objects of one shape, or making them would cost more than the decision. */
class Context {
  request = {}
  method = 'GET'
  target = ''
  ip = '192.0.2.7'
  route = undefined
  header = NOTHING
  signedCookie = NOTHING
  getResponseHeader = NOTHING
  // Its own, as two decisions on one response cause a warning.
  response = { on: NOTHING, removeListener: NOTHING }
  path

  /** @param {string} path */
  constructor(path) {
    this.path = path
  }
}

/** @type {(path: string) => Promise<{ verdict: unknown }> | { verdict: unknown }} */
let decide

answer({
  /** @param {{ build: string }} params */
  async join({ build }) {
    const of = (/** @type {string} */ name) => import(new URL(`packages/${name}`, build).href)
    const { memoryStore } = await of('core/dist/index.js')
    const { createGuard } = await of('core/dist/http.js')
    const { policies } = await of('policies/dist/index.js')
    const paths = [
      '/api/things/:what',
      '/users/:id/reset',
      '/login',
      ...Array.from({ length: 30 }, (_, i) => `/p${i}/:id`),
    ]
    const limits = [{ algorithm: 'gcra', limit: 100_000_000, window: '1m' }]
    const all = Object.fromEntries(paths.map((path, i) => [`p${i}`, { key: 'ip', match: { paths: [path] }, limits }]))
    const loaded = await policies.from({ object: { version: 1, policies: all } })
    const guard = createGuard({ policies: loaded, store: memoryStore(), headers: false })
    decide = (path) => guard(new Context(path))
    for (const path of Object.values(SPELLINGS).flat()) {
      const { verdict } = await decide(path)
      if ((verdict === undefined) !== path.startsWith('/elsewhere'))
        throw new Error(`${path} is matched by what it is not to be`)
    }
  },

  /** @param {{ count: number, spelling: 'plain' | 'odd' }} load */
  async decide({ count, spelling }) {
    const paths = SPELLINGS[spelling]
    const cpu = process.cpuUsage()
    for (let i = 0; i < count; i++) await decide(/** @type {string} */ (paths[i % paths.length]))
    const { user, system } = process.cpuUsage(cpu)
    return (user + system) / count
  },
})
