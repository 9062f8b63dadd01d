import { execFileSync } from 'node:child_process'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { limiterOf, memoryStore, SluiceError } from '@sluice/core'
import express from 'express'
import request from 'supertest'
import { describe, expect, test } from 'vitest'
import { distantStore } from '../../support/outages.js'
import { CONTROLLERS } from './apps.js'
import type * as Fixtures from './fixtures/controllers.js'

const path = (relative: string) => fileURLToPath(new URL(relative, import.meta.url))

/** Compiles the fixtures with TypeScript's own compiler, which checks their types, too, and loads the result. */
async function compiled(shape: 'standard' | 'experimental'): Promise<typeof Fixtures> {
  execFileSync(path('../../../node_modules/.bin/tsc'), ['-p', path(`tsconfig.${shape}.json`)], { stdio: 'inherit' })
  return import(pathToFileURL(path(`../../.tmp/decorators/${shape}/controllers.js`)).href)
}

const SHAPES = {
  'as a standard decorator': await compiled('standard'),
  'under experimentalDecorators': await compiled('experimental'),
}

/** Synchronous and asynchronous decisions. */
const PACES = {
  'decided at once': {},
  'decided later': { cost: async () => 1 },
}

describe.each(Object.entries(SHAPES))('%s', (_shape, fixtures) => {
  describe.each(Object.entries(CONTROLLERS))('in %s', (framework, factory) => {
    describe.each(Object.entries(PACES))('%s', (_pace, pace) => {
      const start = (now = 1_000_000) => {
        const time = { now }
        const fails = new Error('on purpose')
        const store = memoryStore({ clock: () => time.now })
        return factory(fixtures, { options: { store, ...pace }, fails }).then((app) => ({ ...app, time, fails }))
      }

      test('a decorated method runs behind its limiter, with its this', async () => {
        const app = await start()
        const first = await request(app.server).get('/list')
        expect([first.status, first.text]).toEqual([200, 'hello list'])
        expect(first.headers).toMatchObject({
          'ratelimit-policy': '"UserController-list";q=2;w=10',
          ratelimit: '"UserController-list";r=1;t=10',
        })
        app.time.now += 4000
        await request(app.server).get('/list')
        const refused = await request(app.server).get('/list')
        expect([refused.status, refused.headers['retry-after']]).toEqual([429, '6'])
        expect(JSON.parse(refused.text)).toMatchObject({ 'violated-policies': ['UserController-list'] })
        app.time.now += 6000
        expect((await request(app.server).get('/list')).status).toBe(200)
      })

      test('methods named by a symbol, and static ones, have limiters of their own', async () => {
        const app = await start()
        const get = async (at: string) => {
          const { status, text, headers } = await request(app.server).get(at)
          return [status, text, headers['ratelimit-policy']]
        }
        expect(await get('/search/ANN')).toEqual([200, 'hello ann', '"UserController-search_it";q=2;w=10'])
        expect(await get('/health')).toEqual([200, 'UserController', '"given";q=2;w=10'])
        expect(await get('/status')).toEqual([200, 'up', '"UserController-status";q=2;w=10'])
        expect(await get('/status')).toEqual([200, 'up', '"UserController-status";q=2;w=10'])
        expect((await get('/status'))[0]).toBe(429)
        expect((await get('/health'))[0]).toBe(200)
      })

      test.each(['/rejects', '/throws'])('an error of a method that %s reaches the error handler once', async (at) => {
        const app = await start()
        expect((await request(app.server).get(at)).status).toBe(500)
        expect(app.errors).toEqual([app.fails])
        expect((await request(app.server).get(at)).status).toBe(500)
        expect((await request(app.server).get(at)).status).toBe(429)
        expect(app.errors).toEqual([app.fails, app.fails])
      })

      test('limiterOf returns the limiter of a method, and can block its key', async () => {
        const app = await start()
        const limiter = limiterOf(app.users, 'list')
        expect(limiterOf(app.Users.prototype, 'list')).toBe(limiter)
        await limiter.block('127.0.0.1', { for: '1m' })
        expect((await request(app.server).get('/list')).status).toBe(429)
        await limiter.unblock('127.0.0.1')
        expect((await request(app.server).get('/list')).status).toBe(200)
      })

      test('during an outage a method keeps its limits locally, or follows `unavailable`', async () => {
        const store = distantStore(() => 1_000_000)
        store.isAway = true
        const statuses = async (options: object) => {
          const app = await factory(fixtures, {
            options: { store, ...pace, ...options },
            fails: new Error('on purpose'),
          })
          const responses = [1, 2, 3].map(async () => (await request(app.server).get('/list')).status)
          return (await Promise.all(responses)).sort()
        }
        expect(await statuses({})).toEqual([200, 200, 429])
        expect(await statuses({ unavailable: { share: 0.5 } })).toEqual([200, 429, 429])
        expect(await statuses({ unavailable: { decide: 'allow' } })).toEqual([200, 200, 200])
        expect(await statuses({ unavailable: { decide: 'deny' } })).toEqual([503, 503, 503])
      })

      if (framework.startsWith('Express')) {
        test('a method that calls next and rejects as well calls next once', async () => {
          const app = await start()
          expect((await request(app.server).get('/next')).status).toBe(500)
          expect(app.errors).toEqual([app.fails])
        })
      }
    })
  })

  test('an error of the limiter reaches the error handler, and the method does not run', async () => {
    for (const [name, factory] of Object.entries(CONTROLLERS)) {
      const broken = new Error('no cost today')
      const store = memoryStore()
      const cost = () => Promise.reject(broken)
      const app = await factory(fixtures, { options: { store, cost }, fails: new Error() })
      expect([name, (await request(app.server).get('/list')).status]).toEqual([name, 500])
      expect(app.errors).toEqual([broken])
    }
  })

  test('a policy is named after the class that has the method, also when it is inherited, bound or wrapped', async () => {
    const { Base, Heir, Overrider, Bound, Wrapped } = fixtures.family(memoryStore({ clock: () => 0 }))
    const policiesOf = async (users: InstanceType<typeof Base>) => {
      const app = express().get('/', users.list.bind(users))
      const response = await request(app).get('/')
      return [response.text, response.headers.ratelimit]
    }
    const heir = new Heir()
    expect(await policiesOf(heir)).toEqual(['base', '"Base-list";r=1;t=10'])
    expect(await policiesOf(new Base())).toEqual(['base', '"Base-list";r=0;t=10'])
    expect(limiterOf(heir, 'list')).toBe(limiterOf(Base.prototype, 'list'))
    expect(await policiesOf(new Overrider())).toEqual([
      expect.stringContaining('"violated-policies":["Base-list"]'),
      '"Overrider-list";r=1;t=10, "Base-list";r=0;t=10',
    ])
    expect(await policiesOf(new Bound())).toEqual(['bound', '"Bound-list";r=1;t=10'])
    expect((await limiterOf(new Bound(), 'list').peek({ ip: '::ffff:7f00:1' })).remaining).toBe(1)
    expect(await policiesOf(new Wrapped())).toEqual(['wrapped', '"Wrapped-list";r=1;t=10'])
    expect(() => limiterOf(new Wrapped(), 'list')).toThrow('limiterOf: list: expected a method with @RateLimited')
  })

  test.each(Object.keys(fixtures.mistakes))('%s is rejected when the class is defined', (mistake) => {
    expect(fixtures.mistakes[mistake]).toThrow(SluiceError)
    expect(fixtures.mistakes[mistake]).toThrow(expect.objectContaining({ code: 'INVALID_POLICY' }))
  })

  test.each(Object.keys(fixtures.misuses))('%s is rejected by the compiler, not at run time', (misuse) => {
    expect(fixtures.misuses[misuse]).not.toThrow()
  })
})

test('a method called by hand without the arguments of the limiter says which it needs', async () => {
  const { expressUsers, fastifyUsers } = SHAPES['as a standard decorator']
  const setup = { options: { store: memoryStore() }, fails: new Error('on purpose') }
  const users = new (fastifyUsers(setup))('hello')
  expect(() => users.list({} as never)).toThrow('RateLimited: expected the method to be called with (request, reply)')
  const app = express().get('/', (req, res) => {
    ;new (expressUsers(setup))('hello').rejects(req, res).catch((error) => res.send(error.message))
  })
  expect((await request(app).get('/')).text).toBe('on purpose')
})

test('a standard decorator needs a name if the class is not known yet', async () => {
  const { Base } = SHAPES['as a standard decorator'].family(memoryStore())
  const errors: unknown[] = []
  const app = express().get('/', Base.prototype.list)
  app.use((error: unknown, _req: unknown, res: express.Response, _next: unknown) => {
    errors.push(error)
    res.sendStatus(500)
  })
  expect((await request(app).get('/')).status).toBe(500)
  expect(String(errors)).toBe(
    'SluiceError: RateLimited: name: expected one, as the class is unknown until the first new (the method is "list")',
  )
  // After the first instance the class is known.
  new Base()
  expect((await request(app).get('/')).status).toBe(200)
})
