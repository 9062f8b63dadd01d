import { test } from 'vitest'
import { explore } from './support/explore.js'
import { type PermitsOptions, PermitsWorld } from './support/permits-world.js'

const explorePermits = (options: PermitsOptions, moreThan: number) => explore(() => new PermitsWorld(options), moreThan)

test('a client that leaves, and a handler that begins, ends and releases, at any moment', async () => {
  await explorePermits(
    {
      events: ['headers', 'leave', 'end', 'release'],
      showsPromise: false,
      halves: 2,
    },
    100,
  )
})

test('the same where the framework shows the promise of the handler', async () => {
  await explorePermits(
    {
      events: ['headers', 'leave', 'end', 'resolve'],
      showsPromise: true,
      halves: 2,
    },
    100,
  )
})
