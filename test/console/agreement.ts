import { request as httpRequest, type Server } from 'node:http'
import { expect } from 'vitest'
import type { Sent, Situation } from './situations.js'
import { portOf, withBody } from './support.js'

interface Row {
  readonly limiter: string
  readonly needs?: readonly string[]
  readonly unless?: readonly string[]
  readonly error?: string
}

interface Why {
  readonly now: Row[]
  readonly reported: Row[]
  readonly unknown: Row[]
  readonly maxBody?: number
}

/** A situation that runs: a console, and requests to its guard. */
export interface Running {
  readonly server: Server
  /** Where the console is on the server, such as `/sluice`. */
  readonly path: string
  /** Resolves to whether the request proceeds. */
  send(request: Sent): Promise<boolean>
  close(): Promise<void>
}

let clients = 0
/** From another address each time, as the console bounds the requests of one. */
function why({ server, path }: Running, body: object): Promise<Why> {
  const port = portOf(server)
  const localAddress = `127.0.${1 + (clients++ % 200)}.7`
  return new Promise((resolve, reject) => {
    const headers = withBody(port)
    const asked = httpRequest(
      { host: '127.0.0.1', port, path: `${path}/api/why`, method: 'POST', headers, localAddress, agent: false },
      (response) => {
        let text = ''
        response.on('data', (chunk) => {
          text += chunk
        })
        response.on('end', () => (response.statusCode === 200 ? resolve(JSON.parse(text)) : reject(new Error(text))))
      },
    )
    asked.on('error', reject)
    asked.end(JSON.stringify(body))
  })
}

const ipOf = ({ ip }: Sent) => ({ kind: 'ip', value: ip })
const othersOf = ({ user, key }: Sent) => [
  { kind: 'user', value: user },
  { kind: 'header:x-api-key', value: key },
]

/** How many verdicts of each kind were held against requests. */
export interface Held {
  admitted: number
  refused: number
  open: number
  /** Admitted with smaller bodies alone. */
  tooLarge: number
}

export const noneHeld = (): Held => ({ admitted: 0, refused: 0, open: 0, tooLarge: 0 })

/** Needs that no identity gives. */
const OF_CODE = ['request', 'trap']

/** Holds the verdict of the page against the request that follows, for each request that is asked for. */
export async function agree(given: Situation, start: () => Promise<Running>, held: Held): Promise<void> {
  const running = await start()
  const { send } = running
  try {
    for (const request of given.before) await send(request)
    for (const request of given.asked) {
      const { path, method, tier, body: bytes } = request
      // Whether the app trusts every proxy is known from its requests: here, from one of another client.
      await send({ ...request, ip: '203.0.113.9', user: 'eve', key: 'key-9', body: 0 })
      const body = { identity: ipOf(request), ...(!given.partly && { with: othersOf(request) }), path, method, tier }
      const page = await why(running, body)
      const isTooLarge = page.maxBody !== undefined && bytes > page.maxBody
      const isGreen = page.now.length === 0 && page.unknown.length === 0
      const isRed = page.now.some(({ unless }) => unless === undefined)
      const proceeds = await send(request)
      const got = { proceeds, page, request }
      // Of larger bodies the page says nothing.
      if (isGreen && !isTooLarge) expect(got).toMatchObject({ proceeds: true })
      if (isRed) expect(got).toMatchObject({ proceeds: false })
      if (!given.partly) {
        // With all identities, only code is not known.
        const open = [
          ...page.unknown.flatMap(({ needs = ['error'] }) => needs),
          ...page.now.flatMap(({ unless = [] }) => unless),
        ]
        expect({ open: open.filter((each) => !OF_CODE.includes(each)), page }).toMatchObject({ open: [] })
      }
      held[isRed ? 'refused' : !isGreen ? 'open' : isTooLarge ? 'tooLarge' : 'admitted']++
    }
  } finally {
    await running.close()
  }
}
