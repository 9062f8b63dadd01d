import { byPath } from '@sluice/core'
import { pathOf } from '@sluice/core/http'
import { policies } from '@sluice/policies'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { contextOf } from '../support/context.js'
import { byEffort } from '../support/effort.js'
import { KeysOfRoutes, PATHS, spelledTargets, WHOLE } from '../support/path-spellings.js'

/** How a proxy, a container or a router on the way to a handler changes a path. Undefined if it rejects the path. */
type Step = (path: string) => string | undefined

/** As servlet containers do, before anything is decoded (Servlet 6.0, 3.5.2). */
const dropParameters: Step = (path) => path.replace(/;[^/]*/g, '')
const decode: Step = (path) => {
  try {
    return decodeURIComponent(path)
  } catch {
    return undefined
  }
}
/** A slash that does not end a segment. */
const SLASH_WITHIN = '\ue000'
const decodeSegments: Step = (path) => {
  const decoded = path.split('/').map(decode)
  return decoded.includes(undefined) ? undefined : decoded.map((each) => each?.replaceAll('/', SLASH_WITHIN)).join('/')
}
const refuseEncodedSlashes: Step = (path) => (/%2f|%5c|\\/i.test(path) ? undefined : path)
const turnBackslashes: Step = (path) => path.replaceAll('\\', '/')
const mergeSlashes: Step = (path) => path.replace(/\/{2,}/g, '/')
const lower: Step = (path) => path.toLowerCase()
/** RFC 3986, 5.2.4, where an empty segment is one. */
const removeDots: Step = (path) => {
  const segments = path.split('/').slice(1)
  const remaining: string[] = []
  segments.forEach((segment, i) => {
    const isLast = i === segments.length - 1
    if (segment === '..') remaining.pop()
    if (segment !== '..' && segment !== '.') remaining.push(segment)
    else if (isLast) remaining.push('')
  })
  return `/${remaining.join('/')}`
}
const encode: Step = (path) => path.split('/').map(encodeURIComponent).join('/')
const encodePercent: Step = (path) => path.replaceAll('%', '%25')
/** As browsers, and servers that parse targets as URLs do. */
const whatwg: Step = (path) => new URL(`http://h${path}`).pathname

const nginx = [decode, mergeSlashes, removeDots]
const tomcat = [dropParameters, refuseEncodedSlashes, decode, mergeSlashes, removeDots]
const decodingTomcat = [dropParameters, decode, turnBackslashes, mergeSlashes, removeDots]

const MODELS: Readonly<Record<string, readonly Step[]>> = {
  'RFC 3986, parameters dropped': [dropParameters, decodeSegments],
  'RFC 3986, dot segments removed': [removeDots, decodeSegments],
  'RFC 3986, dot segments removed and then parameters dropped': [removeDots, dropParameters, decodeSegments],
  'RFC 3986, parameters dropped and then dot segments removed': [dropParameters, removeDots, decodeSegments],
  'a servlet container': tomcat,
  'a servlet container that lets encoded slashes pass': [dropParameters, decodeSegments, mergeSlashes, removeDots],
  'a servlet container that decodes slashes': decodingTomcat,
  'a framework that drops parameters after decoding': [decode, dropParameters, mergeSlashes],
  'a framework that drops parameters of decoded segments': [decodeSegments, dropParameters],
  'a server that parses targets as URLs': [whatwg, decodeSegments, lower],
  'nginx with a path of its own in proxy_pass': [...nginx, lower],
  'nginx before a servlet container': [...nginx, encode, ...tomcat],
  'nginx that encodes less, before a servlet container': [...nginx, encodePercent, ...tomcat],
  'a proxy that removes dot segments, before a servlet container': [removeDots, ...decodingTomcat],
}

/** The first pattern that matches, and its parameters. Routers ignore one slash at the end, or do not. */
function routed(path: string): string | undefined {
  const segments = path.split('/').slice(1)
  for (const given of [segments, segments.at(-1) === '' ? segments.slice(0, -1) : segments]) {
    for (const pattern of PATHS) {
      const parameters = parametersOf(pattern.split('/').slice(1), given)
      if (parameters) return JSON.stringify([pattern, parameters.map((text) => text.replaceAll(SLASH_WITHIN, '/'))])
    }
  }
  return undefined
}

function parametersOf(pattern: readonly string[], segments: readonly string[]): string[] | undefined {
  const parameters: string[] = []
  for (const [i, part] of pattern.entries()) {
    if (part === '**') return [...parameters, segments.slice(i).join('/')]
    if (segments[i] === undefined) return undefined
    if (part.startsWith(':')) parameters.push(segments[i])
    else if (part !== segments[i]) return undefined
  }
  return segments.length === pattern.length ? parameters : undefined
}

test.each(Object.entries(MODELS))('no spelling of a path passes its policy, or has two keys: %s', async (_, steps) => {
  const policy = { match: { paths: PATHS }, limits: [{ limit: 1, window: '1m' }] }
  const loaded = await policies.from({ object: { version: 1, policies: { one: policy } } })
  const ownKey = byPath<unknown>()
  const keyOf = (path: string) => {
    try {
      return ownKey({}, contextOf({ path })) as string
    } catch {
      return undefined
    }
  }
  const keys = new KeysOfRoutes()
  let count = 0
  const check = async (target: string) => {
    const path = pathOf(target)
    // Only frameworks without a proxy receive others: proxies reject them.
    if (!path.startsWith('/') || /[\xa0]/.test(path)) return
    const read = steps.reduce<string | undefined>((text, step) => (text === undefined ? text : step(text)), path)
    const route = read === undefined ? undefined : routed(read)
    if (route === undefined) return
    count++
    const why = await loaded.explain({ path: target }).then(
      ([explained]) => explained?.why,
      (error) => /unreadable|expected a path/.test(String(error)) || error,
    )
    expect([undefined, true], `${target} is ${read}`).toContain(why)
    expect(keys.problem(route, keyOf(path), target)).toBeUndefined()
  }
  for (const target of WHOLE) await check(target)
  expect(count).toBeGreaterThan(5)
  await fc.assert(fc.asyncProperty(spelledTargets, check), { numRuns: byEffort({ usual: 1000, full: 100_000 }) })
})
