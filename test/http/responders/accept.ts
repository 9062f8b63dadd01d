import { describe, expect, test } from 'vitest'
import { ask, type Start } from './apps.js'

export function acceptTests(start: Start): void {
  describe('Accept of a refused request', () => {
    const far = (last: string) => `${'image/a;q=0.1, '.repeat(40)}${last}`
    test.each<[string, string, RegExp]>([
      ['within reach', 'text/html, application/json', /problem\+json/],
      ['beyond the first 32 entries', far('application/json'), /text\/plain/],
      ['beyond the first 1,000 characters', `a/${'a'.repeat(1000)}, application/json`, /text\/plain/],
      ['cut by the end of those', `${'a/'.padEnd(990, 'a')}, application/json`, /text\/plain/],
      ['of 15 kB', far('').repeat(24), /text\/plain/],
    ])('Accept of a refused request is read up to its bounds: %s', async (_what, accept, type) => {
      const app = await start({ limit: 0, window: '10s' })
      const { status, head } = await ask(app, 'GET', { Accept: accept })
      expect(status).toBe(429)
      expect(head).toMatch(type)
    })
  })
}
