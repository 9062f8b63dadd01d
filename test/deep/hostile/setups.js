// The targets of hostile requests: limiters of every kind of key, list, policy, responder and header dialect.
import { createHash } from 'node:crypto'
import {
  byCookie,
  byCredentials,
  byHeader,
  byIp,
  byMethod,
  byPath,
  compose,
  degrade,
  delay,
  escalate,
  fixedWindow,
  ipRanges,
  list,
  memoryStore,
  queue,
  reject,
  shadow,
  tarpit,
  throttle,
  trap,
} from '@sluice/core'
import { policies } from '@sluice/policies'

/** @typedef {Record<string, unknown>} Options */

const ENDLESS = 1_000_000_000
const byText = byHeader('x-key', { secret: false })

const ONE = { limits: [{ algorithm: 'fixedWindow', limit: 1, window: '1h' }] }
/** @param {number} limit @param {object} [more] */
const limited = (limit, more) => ({ limits: [fixedWindow({ limit, window: '1h', ...more })] })

const KEYS = {
  byIp: byIp(),
  byCookie: byCookie('sid'),
  'byCookie, a name of one character': byCookie('s', { secret: false }),
  'byHeader(authorization)': byHeader('authorization'),
  byCredentials: byCredentials(),
  byHeader: byText,
  byPath: byPath(),
  'byPath, exact': byPath({ exact: true }),
  compose: compose(byText, byHeader('accept', { secret: false }), byPath(), byMethod()),
}

/** Options of limiters, by their kind and name. @type {Record<string, () => Options | Promise<Options>>} */
export const SETUPS = {
  ...Object.fromEntries(
    Object.entries(KEYS).flatMap(([name, key]) => [
      [`key: ${name}`, () => ({ ...limited(ENDLESS), key, anonymous: 'by-ip' })],
      [`key: ${name}, refused`, () => ({ ...limited(1), key, anonymous: 'by-ip' })],
    ]),
  ),
  'list: cookies': () => listed({ 'cookie:sid': ['one'] }),
  'list: credentials': () => listed({ 'header:authorization': ['Bearer one'] }),
  'list: headers': () => listed({ 'header:x-key': ['one'], 'header:accept': ['one'] }),
  'list: addresses': () => ({ ...limited(ENDLESS), deny: ipRanges(['192.0.2.0/24', '2001:db8::/32']) }),
  'list: refused': () => ({ ...limited(ENDLESS), deny: ipRanges(['0.0.0.0/0', '::/0']) }),
  'policy: paths': () => byDocument({ a: { match: { paths: ['/login', '/a/:b/c', '/*/*/*/d', '/x/**'] }, ...ONE } }),
  'policy: every path': () => byDocument({ a: ONE, b: { match: { paths: ['/**'] }, ...ONE } }),
  'policy: heads': () =>
    byDocument({ a: { match: { methods: ['GET'], hosts: ['*.example.com'], headers: { 'x-key': 'a' } }, ...ONE } }),
  'policy: keys': () =>
    byDocument({ a: { key: ['header:authorization', 'path'], ...ONE }, b: { key: 'cookie:sid', ...ONE } }),
  'policy: overrides': () =>
    byDocument({ a: { key: 'header:x-key', ...ONE } }, [
      {
        policy: 'a',
        key: { 'header:x-key': `sha256:${createHash('sha256').update('a').digest('hex')}` },
        limits: [{ limit: 2 }],
      },
    ]),
  'trap: paths': () => ({
    ...limited(ENDLESS),
    ban: { by: 'ip', after: 1000, within: '1s', for: ['1s'], trap: trap(['/.env', '/.git/*', '/a/b']) },
  }),
  'cost: bytes of bodies': () => ({
    ...limited(ENDLESS, { unit: 'content-bytes' }),
    body: { max: 1000 },
  }),
  ...Object.fromEntries(
    Object.entries({
      reject: reject(),
      'reject with a body': reject({ status: 503, body: (/** @type {{ url?: string }} */ { url }) => ({ url }) }),
      queue: queue({ maxWait: 2, size: 1 }),
      delay: delay({ max: 2 }),
      throttle: throttle({ bytesPerSecond: 1_000_000 }),
      degrade: degrade(),
      shadow: shadow(),
      tarpit: tarpit({ for: 2 }),
      escalate: escalate([reject(), tarpit({ for: 2 })]),
    }).map(([name, respond]) => [`responder: ${name}`, () => ({ ...limited(1), respond })]),
  ),
  ...Object.fromEntries(
    ['draft-11', 'draft-8', 'draft-7', 'draft-6', 'legacy'].map((headers) => [
      `headers: ${headers}`,
      () => ({ limits: [...limited(1).limits, ...limited(ENDLESS, { name: 'b' }).limits], headers }),
    ]),
  ),
}

/** @param {Record<string, string[]>} values */
function listed(values) {
  return { ...limited(ENDLESS), allow: list({ user: [] }), deny: list(values) }
}

/** @param {Record<string, object>} all @param {object[]} [overrides] */
async function byDocument(all, overrides) {
  const document = { version: 1, policies: all, ...(overrides && { overrides }) }
  return { policies: await policies.from({ object: document }), anonymous: 'by-ip', store: memoryStore() }
}

/** The places of a request that setups read, by the beginning of their names. In other places, only some requests are tried. */
const READS = {
  'key: byIp': ['x-forwarded-for'],
  'key: byCookie': ['cookie'],
  'key: byHeader(authorization)': ['authorization'],
  'key: byCredentials': ['authorization'],
  'key: byHeader': ['x-key'],
  'key: byPath': ['path', 'query'],
  'key: compose': ['x-key', 'accept', 'path'],
  'list: cookies': ['cookie'],
  'list: credentials': ['authorization'],
  'list: headers': ['x-key', 'accept'],
  'list: ': ['x-forwarded-for'],
  'policy: heads': ['host', 'x-key'],
  'policy: keys': ['authorization', 'path', 'cookie'],
  'policy: overrides': ['x-key'],
  'policy: ': ['path', 'query'],
  'trap: ': ['path', 'sec-purpose', 'referer'],
  'responder: shadow': ['accept-encoding', 'host', 'path'],
  'responder: reject': ['accept'],
}

/** @param {string} name */
export const readsOf = (name) => Object.entries(READS).find(([start]) => name.startsWith(start))?.[1] ?? []
