import { byHeader, degrade, escalate, memoryStore, pass, type Responder, reject, shadow, tarpit } from '@sluice/core'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { byEffort } from '../support/effort.js'
import { run } from './support/app.js'
import { FRAMEWORKS } from './support/frameworks.js'
import { nestApp } from './support/nest.js'
import { nodeApp } from './support/node-http.js'

// An attacker wants a shared cache to store the response that it gets in place of the handler's, for everyone.

const APPS = {
  ...FRAMEWORKS,
  'node:http': nodeApp,
  'Nest on Express': nestApp('express'),
  'Nest on Fastify': nestApp('fastify'),
}

/** The directives of a field of RFC 9111 §5.2, without those of quoted arguments. */
function directives(value: string): string[] {
  const found: string[] = []
  let text = ''
  let isQuoted = false
  for (let i = 0; i < value.length; i++) {
    const character = value[i] as string
    if (isQuoted && character === '\\') i++
    else if (character === '"') isQuoted = !isQuoted
    if (character === ',' && !isQuoted) {
      found.push(text)
      text = ''
    } else text += character
  }
  return [...found, text].map((directive) => directive.trim().toLowerCase())
}

/** Whether shared caches must not store a response with this field (RFC 9111 §3, §5.2.2). */
function forbids(value: string): boolean {
  const named = directives(value)
  return named.includes('private') || (named.includes('no-store') && !named.includes('must-understand'))
}

const TARGETED = [
  'CDN-Cache-Control',
  'Cloudflare-CDN-Cache-Control',
  'Netlify-CDN-Cache-Control',
  'Vercel-CDN-Cache-Control',
  'Surrogate-Control',
  'Edge-Control',
]

/** Whether some shared cache may store a response: by its own field, or by the one for all. */
function mayBeStored(headers: Headers): boolean {
  if (!forbids(headers.get('cache-control') ?? '')) return true
  if ((headers.get('x-accel-expires') ?? '0') !== '0') return true
  return TARGETED.some((name) => !forbids(headers.get(name) ?? 'no-store'))
}

const directive = fc.constantFrom(
  ...['public', 'max-age=60', 's-maxage=60', 'immutable', 'no-cache', 'private', 'no-store', 'must-understand'],
  ...['private="set-cookie"', 'no-cache="a, no-store, b"', 'ext="private', 'No-Store', 'PRIVATE', 'stale-if-error=9'],
)
const control = fc
  .tuple(fc.array(directive, { minLength: 1, maxLength: 4 }), fc.constantFrom(',', ', ', ' ,\t'))
  .map(([parts, by]) => parts.join(by))
const cased = (name: string) => fc.constantFrom(name, name.toLowerCase(), name.toUpperCase())
const field = fc.oneof(
  fc.tuple(cased('Cache-Control'), control),
  fc.tuple(fc.constantFrom(...TARGETED).chain(cased), control),
  fc.tuple(cased('X-Accel-Expires'), fc.constantFrom('60', '@1900000000', '0')),
)
const fields = fc.array(field, { maxLength: 3 }).map((all) => Object.fromEntries(all))

type Fields = Readonly<Record<string, string>>

/** The responders, by name: made of fields where they send some. */
const RESPONDERS: Readonly<Record<string, (headers: Fields) => Responder>> = {
  reject: () => reject(),
  pass: () => pass(),
  degrade: () => degrade(),
  shadow: (headers) => shadow({ body: 'fake', headers }),
  own: (headers) => () => ({ status: 200, headers: Object.entries(headers), body: 'own', showsQuota: false }),
  tarpit: (headers) => tarpit({ for: 1, answer: shadow({ headers }) }),
  escalate: (headers) => escalate([shadow({ headers }), reject()]),
}

/** How the attacker gets a response that is not the handler's. */
const causes = fc.constantFrom('limited', 'blocked', 'banned', 'invalid', 'invalid, passed')

describe.each(Object.entries(APPS))('%s', (_, factory) => {
  test('no shared cache may store a response in place of the handler’s, whatever the app and the responder set', async () => {
    await fc.assert(
      fc.asyncProperty(
        fields,
        fc.constantFrom(...Object.keys(RESPONDERS)),
        fields,
        causes,
        async (preset, responder, headers, cause) => {
          const onInvalid = cause === 'invalid, passed' ? 'pass' : 'reject'
          const ban = cause === 'banned' && { ban: { after: 1, within: '1m', for: ['1h'] } }
          const store = memoryStore()
          const limiter = {
            store,
            limit: 1,
            window: '1h',
            key: byHeader('x-key'),
            respond: RESPONDERS[responder]?.(headers),
            onInvalid,
            ...ban,
          }
          const presetHeaders = { 'Cache-Control': 'public, max-age=60', ...preset }
          const app = await run(factory, { presetHeaders, routes: { '/': { limiters: [limiter as never] } } })
          try {
            const get = (key?: string) => fetch(app.url, { headers: key === undefined ? {} : { 'x-key': key } })
            if (cause === 'blocked')
              await (app.limiters[0] as never as { block: (...args: unknown[]) => Promise<void> }).block('mallory', {
                for: '1h',
              })
            if (cause === 'limited' || cause === 'banned') await get('mallory')
            const response = await get(cause.startsWith('invalid') ? undefined : 'mallory')
            await response.text()
            expect([mayBeStored(response.headers), [...response.headers]]).toEqual([false, expect.anything()])
          } finally {
            await app.close()
          }
        },
      ),
      { numRuns: byEffort({ quick: 10, usual: 25, full: 2000 }) },
    )
  })
})
