import { candidatesFor, suggestionsFor } from '../identity/find.js'
import { clientKinds } from '../identity/kinds.js'
import { object, route } from './route.js'

const TEXT = { type: 'string', minLength: 1, maxLength: 4096 } as const

export const FIND = [
  route<{ readonly text: string }>({
    method: 'POST',
    path: '/api/find',
    id: 'find',
    summary: 'The clients that a text may mean, such as an address, a network, an API key or an account.',
    may: 'read',
    body: object({ text: { ...TEXT, description: 'A raw value; user=ann or user ann names its kind.' } }, 'text'),
    answer: 'A candidate of each kind that fits, with isKnown: those that are known first.',
    run: async ({ console: parts, body: { text } }) => ({ candidates: await candidatesFor(parts, text) }),
  }),
  route<{ readonly text?: string }>({
    method: 'POST',
    path: '/api/suggestions',
    id: 'suggestions',
    summary: 'Clients that were refused of late, are blocked or are among the offenders, and contain a text.',
    may: 'read',
    body: object({ text: { ...TEXT, minLength: 0 } }),
    answer: 'Up to eight clients, those with the most refusals first, with values as they are counted.',
    run: async ({ console: parts, body: { text = '' } }) => ({ suggestions: await suggestionsFor(parts, text) }),
  }),
  route({
    method: 'GET',
    path: '/api/kinds',
    id: 'kinds',
    summary:
      'The kinds of clients: those that limiters and documents count, and those of blocks, refusals and keys in Redis.',
    may: 'read',
    answer: 'Kinds, of up to 10,000 keys of Redis.',
    run: async ({ console: parts }) => ({ kinds: await clientKinds(parts) }),
  }),
]
