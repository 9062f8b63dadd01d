import { byCookie, type SluiceError } from '@sluice/core'
import { afterAll } from 'vitest'
import { contextOf } from '../../support/context.js'
import { Connection, hostileCookies, NAME, parsers, parsingServers, type Sight } from './support/cookies.js'
import { must } from './support/errors.js'
import { fuzz } from './support/fuzz.js'

/** All values that one parser has read, with the key and the cookies of the first request of each. */
class Sessions {
  readonly #keys = new Map<string, { readonly key: string; readonly cookies: readonly string[] }>()

  /** Fails where the parser reads one session in two requests that have different keys. */
  check(parser: string, { value, key, code }: Sight, cookies: readonly string[]): void {
    must(code === undefined || code === 'INVALID_KEY', 'a key, or a refusal', code)
    // Some parsers read quotes and white space around nothing as nothing.
    const isNone = value === undefined || (typeof value === 'string' && /^(\s*|"")$/.test(value))
    if (key === undefined || isNone) return
    must(key !== 'undefined' && key !== '', `a key where ${parser} reads a session`, { value, cookies })
    const id = JSON.stringify(value)
    const known = this.#keys.get(id)
    if (known) must(known.key === key, `one key for what ${parser} reads as ${id}`, [known, { key, cookies }])
    else if (this.#keys.size < 200_000) this.#keys.set(id, { key, cookies })
  }
}

const all = Object.entries(await parsers())
const sessions = new Map<string, Sessions>(all.map(([parser]) => [parser, new Sessions()]))
const byName = byCookie(NAME, { secret: false })

fuzz('cookies', 'two requests with one session, by any cookie parser, have one key or are refused', {
  inputs: hostileCookies,
  dearness: 10,
  check(cookies) {
    // As Node joins them.
    const cookie = cookies.join('; ')
    const context = contextOf({ headers: { cookie } })
    const sight: { key?: string; code?: string } = {}
    try {
      sight.key = String(byName({}, context))
    } catch (error) {
      sight.code = (error as SluiceError).code
    }
    for (const [parser, read] of all) {
      sessions.get(parser)?.check(parser, { ...sight, value: read(cookie) }, cookies)
    }
  },
})

const servers = Object.entries(await parsingServers())
for (const [, server] of servers) await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
const connections = servers.map(([name, server]) => ({
  name,
  seen: new Sessions(),
  connection: new Connection(server),
}))
afterAll(() => {
  for (const { connection } of connections) connection.close()
  for (const [, server] of servers) server.close()
})

fuzz('cookies', 'two requests with one session, by any server, have one key or are refused', {
  inputs: hostileCookies,
  dearness: 100,
  async check(cookies) {
    await Promise.all(
      connections.map(async ({ name, seen, connection }) => {
        const sight = await connection.ask(cookies)
        if (sight) seen.check(name, sight, cookies)
      }),
    )
  },
})
