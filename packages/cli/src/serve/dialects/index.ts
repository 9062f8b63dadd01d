import type { Dialect } from './dialect.js'
import { gatewayDialect } from './gateway.js'
import { jsonDialect } from './json.js'

/** Headers that the configuration of the gateway sets: see examples/gateways. */
const ORIGINAL = {
  method: 'x-original-method',
  uri: 'x-original-uri',
  host: 'x-original-host',
  client: 'x-original-for',
}

/** Headers that Caddy and Traefik set by themselves. */
const FORWARDED = {
  method: 'x-forwarded-method',
  uri: 'x-forwarded-uri',
  host: 'x-forwarded-host',
  client: 'x-forwarded-for',
}

/** Every dialect by its name. */
export const DIALECTS = {
  json: jsonDialect,
  // `auth_request` turns any status but 2xx, 401 and 403 into an error of its own.
  nginx: gatewayDialect({ headers: ORIGINAL, refusedBy: 403 }),
  'forward-auth': gatewayDialect({ headers: FORWARDED }),
  haproxy: gatewayDialect({ headers: ORIGINAL }),
} as const satisfies Record<string, Dialect>

export type DialectName = keyof typeof DIALECTS
