import { IncomingMessage } from 'node:http'
import { Socket } from 'node:net'
import { expect, test } from 'vitest'
import { Link } from '../../packages/console/src/safe/link.js'

/** A link whose time stands still, and moves by hand. */
function linkAt(clock: { ms: number }) {
  const link = new Link(() => clock.ms)
  const open = async (secret: string): Promise<string> => {
    const raw = new IncomingMessage(new Socket())
    raw.push(JSON.stringify({ secret }))
    raw.push(null)
    const { body } = await link.open({ raw, parsed: undefined } as never)
    return JSON.parse(String(body)).session
  }
  const shows = (session: string) => link.isShownIn({ headers: { 'sluice-session': session } } as never)
  return { secret: link.secret, open, shows }
}

test('a link opens for 60 seconds, and later not, even with its secret', async () => {
  const clock = { ms: 1000 }
  const [inTime, late] = [linkAt(clock), linkAt(clock)]
  clock.ms += 60_000
  expect(inTime.shows(await inTime.open(inTime.secret))).toBe(true)
  clock.ms += 1
  await expect(late.open(late.secret)).rejects.toMatchObject({ status: 403, message: expect.stringMatching(/too old/) })
})

test('a session ends 8 hours after the link was opened', async () => {
  const clock = { ms: 0 }
  const link = linkAt(clock)
  clock.ms += 30_000
  const session = await link.open(link.secret)
  clock.ms += 28_800_000
  expect(link.shows(session)).toBe(true)
  clock.ms += 1
  expect(link.shows(session)).toBe(false)
  // The link does not open a second one in its place.
  await expect(link.open(link.secret)).rejects.toMatchObject({ status: 403 })
})

test('the second use of a link is refused, and leaves the session of the first', async () => {
  const link = linkAt({ ms: 0 })
  const session = await link.open(link.secret)
  await expect(link.open(link.secret)).rejects.toMatchObject({
    status: 403,
    message: expect.stringMatching(/opened already/),
  })
  await expect(link.open('guessed')).rejects.toMatchObject({ status: 403 })
  expect(link.shows(session)).toBe(true)
})

test('two uses at the same moment open one session', async () => {
  const link = linkAt({ ms: 0 })
  const uses = await Promise.allSettled([link.open(link.secret), link.open(link.secret)])
  expect(uses.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected'])
})
