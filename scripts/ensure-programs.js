// The programs that the tests start: all that are missing are installed, or named, at once.
import { curl } from './ensure-curl.js'
import { caddy, haproxy, python } from './ensure-gateways.js'
import { nginx } from './ensure-nginx.js'
import { prometheus } from './ensure-prometheus.js'
import { redisServer } from './ensure-redis.js'
import { whenStarted } from './lib/run.js'
import { ensure } from './lib/system-program.js'

export const ensurePrograms = () => ensure([redisServer, nginx, curl, prometheus, caddy, haproxy, python])

await whenStarted(import.meta.url, ensurePrograms)
