import { isIP } from 'node:net'
import { ownFieldsOf } from '@sluice/core/internal'
import { BadInput } from '../bad-input.js'
import { MAX_HEADER_BYTES, MAX_HEADERS, MAX_IN_BATCH } from '../bounds.js'
import type { Named } from '../cannot.js'
import type { DescribedRequest } from '../described-request.js'

const FIELDS = ['method', 'path', 'ip', 'headers', 'keys', 'tiers', 'cost']
const MAX_COST = 1_000_000_000

/**
 * The requests that a body describes: one, or `{ requests: […] }`. An unknown field, key or tier is rejected, as a request with
 * a misspelt key would be counted by something else.
 *
 * @throws BadInput
 */
export function describedIn(body: unknown, named: Named): { requests: readonly DescribedRequest[]; isBatch: boolean } {
  const fields = objectOf(body, 'body')
  if (!('requests' in fields)) return { requests: [described(fields, '', named)], isBatch: false }
  for (const name of Object.keys(fields)) if (name !== 'requests') throw unknown('', name, ['requests'])
  const { requests } = fields
  if (!Array.isArray(requests) || requests.length === 0 || requests.length > MAX_IN_BATCH) {
    throw wrong('requests', `an array of 1 to ${MAX_IN_BATCH} requests`)
  }
  return {
    requests: requests.map((each, i) => described(objectOf(each, `requests[${i}]`), `requests[${i}].`, named)),
    isBatch: true,
  }
}

function described(fields: Record<string, unknown>, at: string, named: Named): DescribedRequest {
  for (const name of Object.keys(fields)) if (!FIELDS.includes(name)) throw unknown(at, name, FIELDS)
  const { method = 'GET', path, ip, cost = 1 } = fields
  if (typeof method !== 'string' || !/^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,32}$/.test(method)) {
    throw wrong(`${at}method`, 'a method such as GET')
  }
  if (typeof path !== 'string' || !/^\/[^\s\\]*$/.test(path)) throw wrong(`${at}path`, 'a path that begins with /')
  if (ip !== undefined && (typeof ip !== 'string' || isIP(ip) === 0)) throw wrong(`${at}ip`, 'an address')
  const headers = namedIn(fields.headers, `${at}headers`)
  const keys = keysIn(fields.keys, `${at}keys`)
  const tiers = Object.fromEntries(textsIn(fields.tiers, `${at}tiers`))
  checkNames(Object.keys(keys), named.keys, `${at}keys`, '--key')
  checkNames(Object.keys(tiers), named.tiers, `${at}tiers`, '--tier')
  if (path.length + lengthOf(headers) + lengthOf(Object.entries(keys)) > MAX_HEADER_BYTES) {
    throw wrong(`${at}path, headers and keys`, `at most ${MAX_HEADER_BYTES} characters`)
  }
  return {
    method,
    target: path,
    ip: ip as string | undefined,
    header: (name) => headers.get(name),
    keys,
    tiers,
    cost: costIn(cost, `${at}cost`),
  }
}

/** Units of requests, or by name. */
function costIn(cost: unknown, where: string): number | Record<string, number> {
  if (typeof cost !== 'object') return unitsIn(cost, where)
  return Object.fromEntries(
    pairsIn(cost, where).map(([unit, units]) => [unit, unitsIn(units, `${where}.${unit.slice(0, 40)}`)]),
  )
}

function unitsIn(units: unknown, where: string): number {
  if (Number.isInteger(units) && (units as number) >= 0 && (units as number) <= MAX_COST) return units as number
  throw wrong(where, `a whole number from 0 to ${MAX_COST}`)
}

function lengthOf(pairs: Iterable<readonly [string, string | number]>): number {
  let length = 0
  for (const [name, value] of pairs) length += name.length + String(value).length
  return length
}

/** Headers by their lower-case names, each once. */
function namedIn(value: unknown, where: string): ReadonlyMap<string, string> {
  const headers = new Map<string, string>()
  for (const [name, text] of textsIn(value, where)) {
    const lower = name.toLowerCase()
    if (headers.has(lower)) throw wrong(where, `each name once, whatever its case: ${JSON.stringify(lower)}`)
    headers.set(lower, text)
  }
  return headers
}

function textsIn(value: unknown, where: string): [string, string][] {
  if (value === undefined) return []
  return pairsIn(value, where).map(([name, text]) => {
    if (typeof text !== 'string') throw wrong(where, 'texts by their names')
    return [name, text]
  })
}

function keysIn(value: unknown, where: string): Record<string, string | number> {
  if (value === undefined) return {}
  const keys = pairsIn(value, where).map(([name, key]): [string, string | number] => {
    if ((typeof key === 'string' && key !== '') || Number.isSafeInteger(key)) return [name, key as string | number]
    throw wrong(where, 'texts or whole numbers by their names')
  })
  return Object.fromEntries(keys)
}

/** Only names of the command line: no policy counts by another one. */
function checkNames(names: readonly string[], known: readonly string[], where: string, option: string): void {
  const wrong = names.find((name) => !known.includes(name))
  if (wrong === undefined) return
  const expected =
    known.length > 0 ? `${known.join(', ')}, by ${option} of the decider` : `none: the decider has no ${option}`
  throw new BadInput(400, `${where}: ${JSON.stringify(wrong.slice(0, 40))}: unknown name (expected ${expected})`)
}

function pairsIn(value: unknown, where: string): [string, unknown][] {
  const pairs = Object.entries(objectOf(value, where))
  if (pairs.length > MAX_HEADERS) throw wrong(where, `at most ${MAX_HEADERS} names`)
  return pairs
}

function objectOf(value: unknown, where: string): Record<string, unknown> {
  // Fields that a body leaves out are not those of `Object.prototype`.
  if (typeof value === 'object' && value !== null && !Array.isArray(value))
    return ownFieldsOf(value as Record<string, unknown>)
  throw wrong(where, 'an object')
}

function wrong(where: string, expected: string): BadInput {
  return new BadInput(400, `${where}: expected ${expected}`)
}

function unknown(at: string, name: string, known: readonly string[]): BadInput {
  return new BadInput(400, `${at}${JSON.stringify(name.slice(0, 40))}: unknown field (expected ${known.join(', ')})`)
}
