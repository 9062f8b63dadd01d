// The programs that the tests start: all that are missing are installed, or named, at once.
import { curl } from './ensure-curl.js'
import { nginx } from './ensure-nginx.js'
import { postgres } from './ensure-postgres.js'
import { redisServer } from './ensure-redis.js'
import { whenStarted } from './lib/run.js'
import { ensure } from './lib/system-program.js'

export const ensurePrograms = () => ensure([redisServer, nginx, postgres, curl])

await whenStarted(import.meta.url, ensurePrograms)
