// Deep: needs goaccess or crowdsec.
import { expect, test } from 'vitest'
import { DOCUMENT, visitsFor } from '../../simulate/live/document.js'
import { SERVERS, serveLive } from '../../simulate/live/live-servers.js'
import { playLog } from '../../simulate/live/played.js'

const SEEDS = [1, 2, 3, 4, 5, 6, 7, 8]

test.each(SEEDS.map((seed) => [seed, SERVERS[seed % SERVERS.length] as (typeof SERVERS)[number]] as const))(
  'visits of seed %i are decided as by a live server of %s',
  { timeout: 300_000 },
  async (seed, framework) => {
    const visits = visitsFor(seed, 60)
    expect(await playLog(DOCUMENT, visits)).toEqual(await serveLive(framework, DOCUMENT, visits))
  },
)
