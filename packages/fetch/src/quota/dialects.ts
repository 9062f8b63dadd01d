import { boundedMs, msUntil, unitsIn } from './numbers.js'
import type { QuotaLimit } from './quota-types.js'
import { itemsIn } from './structured.js'

type Headers = ReadonlyMap<string, string>
/** The limits that headers tell in one dialect. `now`: by the clock of the server. */
type Dialect = (headers: Headers, now: number) => QuotaLimit[]

const UNTOLD = {
  name: 'default',
  unit: 'requests',
  limit: undefined,
  remaining: undefined,
  resetAfterMs: undefined,
  windowMs: undefined,
  isBucket: false,
}

const secondsIn = (text: string | undefined) => {
  const seconds = unitsIn(text)
  return seconds === undefined ? undefined : boundedMs(seconds * 1000)
}

/**
 * IETF drafts 8 and later: `RateLimit: "burst";r=50;t=30` and `RateLimit-Policy: "burst";q=100;w=60;qu="requests"`, matched by name.
 * And draft 7: `RateLimit: limit=100, remaining=50, reset=30`.
 *
 * @see https://datatracker.ietf.org/doc/html/draft-ietf-httpapi-ratelimit-headers-10
 * @see https://datatracker.ietf.org/doc/html/draft-ietf-httpapi-ratelimit-headers-07
 */
const structured: Dialect = (headers, now) => {
  const items = itemsIn(headers.get('ratelimit'))
  const pairs = new Map(items.map(({ value }) => value.split('=').map((part) => part.trim()) as [string, string]))
  if (pairs.has('remaining') || pairs.has('limit')) {
    const [limit, remaining] = [unitsIn(pairs.get('limit')), unitsIn(pairs.get('remaining'))]
    const windowMs = windowIn(headers, limit)
    return [{ ...UNTOLD, limit, remaining, resetAfterMs: msUntil(pairs.get('reset'), now), windowMs }]
  }
  const policies = new Map(itemsIn(headers.get('ratelimit-policy')).map(({ value, params }) => [value, params]))
  return items.flatMap(({ value: name, params }) => {
    const policy = policies.get(name)
    const [limit, remaining] = [unitsIn(policy?.get('q')), unitsIn(params.get('r'))]
    if (remaining === undefined) return []
    const [resetAfterMs, windowMs] = [msUntil(params.get('t'), now), secondsIn(policy?.get('w'))]
    return [{ ...UNTOLD, name, unit: policy?.get('qu') ?? 'requests', limit, remaining, resetAfterMs, windowMs }]
  })
}

/**
 * Three headers of a prefix.
 *
 * IETF drafts up to 6: `RateLimit-Limit`, `-Remaining` and `-Reset` in seconds, with `RateLimit-Policy: 100;w=60`.
 * GitLab has the same names with the reset as an instant. GitHub: `x-ratelimit-*` with an instant, of `x-ratelimit-resource`.
 * Discord: `x-ratelimit-*` of `x-ratelimit-bucket`, and `-reset-after` in seconds with decimals. Twitter: `x-rate-limit-*`.
 *
 * @see https://datatracker.ietf.org/doc/html/draft-ietf-httpapi-ratelimit-headers-06
 * @see https://docs.gitlab.com/administration/settings/user_and_ip_rate_limits/#response-headers
 * @see https://docs.github.com/rest/using-the-rest-api/rate-limits-for-the-rest-api
 * @see https://docs.discord.com/developers/topics/rate-limits
 */
const ofPrefix =
  (prefix: string): Dialect =>
  (headers, now) => {
    const [limit, remaining] = [unitsOf(headers, `${prefix}-limit`), unitsOf(headers, `${prefix}-remaining`)]
    if (limit === undefined && remaining === undefined) return []
    const reset = headers.get(`${prefix}-reset-after`) ?? headers.get(`${prefix}-reset`)
    const name = headers.get(`${prefix}-resource`) ?? headers.get(`${prefix}-bucket`) ?? headers.get(`${prefix}-name`)
    const resetAfterMs = msUntil(reset, now)
    return [
      { ...UNTOLD, name: name ?? UNTOLD.name, limit, remaining, resetAfterMs, windowMs: windowIn(headers, limit) },
    ]
  }

/** Of `100, 100;w=60`, as early drafts have it, the first. */
function unitsOf(headers: Headers, name: string): number | undefined {
  return unitsIn(itemsIn(headers.get(name))[0]?.value)
}

/** The window that `RateLimit-Policy: 100;w=60` has for a limit. */
function windowIn(headers: Headers, limit: number | undefined): number | undefined {
  if (limit === undefined) return undefined
  const text = headers.get('ratelimit-policy') ?? headers.get('ratelimit-limit')
  return secondsIn(
    itemsIn(text)
      .find(({ value, params }) => unitsIn(value) === limit && params.has('w'))
      ?.params.get('w'),
  )
}

const OPENAI = /^x-ratelimit-(limit|remaining|reset)-(?!after$)([a-z0-9_-]{1,64})$/
const ANTHROPIC = /^anthropic-ratelimit-([a-z0-9_-]{1,64})-(limit|remaining|reset)$/

/**
 * A limit for each unit, by a name of its own. Resets are the time until a bucket is full, for requests and for tokens.
 *
 * OpenAI, and Groq as OpenAI: `x-ratelimit-remaining-requests`, `-tokens`, resets such as `6m0s` and `20ms`.
 * Anthropic: `anthropic-ratelimit-requests-remaining`, resets as dates of RFC 3339.
 *
 * @see https://platform.openai.com/docs/guides/rate-limits#rate-limits-in-headers
 * @see https://platform.claude.com/docs/en/api/rate-limits#response-headers
 */
const byUnit: Dialect = (headers, now) => {
  const found = new Map<string, Map<string, string>>()
  for (const [header, text] of headers) {
    const [, field, name] = OPENAI.exec(header) ?? []
    const [, anthropicName, anthropicField] = ANTHROPIC.exec(header) ?? []
    const key = name ?? anthropicName
    if (key === undefined) continue
    const fields = found.get(key) ?? new Map<string, string>()
    found.set(key, fields.set((field ?? anthropicField) as string, text))
  }
  return [...found].flatMap(([name, fields]) => {
    const [limit, remaining] = [unitsIn(fields.get('limit')), unitsIn(fields.get('remaining'))]
    if (remaining === undefined) return []
    return [
      {
        ...UNTOLD,
        name,
        unit: unitNamed(name),
        limit,
        remaining,
        resetAfterMs: msUntil(fields.get('reset'), now),
        isBucket: true,
      },
    ]
  })
}

/** `tokens_usage_based` and `input-tokens` count tokens, `requests-day` and `req-minute` requests. */
function unitNamed(name: string): string {
  if (name.includes('token')) return 'tokens'
  return /^req/.test(name) ? 'requests' : name
}

export const DIALECTS: readonly Dialect[] = [
  structured,
  ofPrefix('ratelimit'),
  ofPrefix('x-ratelimit'),
  ofPrefix('x-rate-limit'),
  byUnit,
]
