import { test } from 'vitest'
import { explore } from './support/explore.js'
import { type PermitsOptions, PermitsWorld } from './support/permits-world.js'

const explorePermits = (options: PermitsOptions, moreThan: number) => explore(() => new PermitsWorld(options), moreThan)

test('a permit is held exactly while it should be, with a client and a handler that act at any moment', async () => {
  await explorePermits(
    {
      events: ['headers', 'leave', 'end', 'release'],
      showsPromise: false,
      halves: 2,
    },
    100,
  )
})

test('a permit is held exactly while it should be, where the framework exposes the promise of the handler', async () => {
  await explorePermits(
    {
      events: ['headers', 'leave', 'end', 'resolve'],
      showsPromise: true,
      halves: 2,
    },
    100,
  )
})
