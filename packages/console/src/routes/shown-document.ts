import { Problem } from '../problem.js'
import { documentOf, LIMITER } from './document.js'
import { object, route } from './route.js'

export const SHOWN_DOCUMENT = [
  route<{ readonly limiter?: string }>({
    method: 'POST',
    path: '/api/document',
    id: 'document',
    summary: 'The policies of a document as YAML, without the clients that it names.',
    may: 'read',
    body: object({ limiter: LIMITER }),
    answer: 'Up to 16,384 characters, the lines of limits by policy, and the number of policies that are left out.',
    run({ console, body: { limiter } }) {
      const document = documentOf(console, limiter, 'name the limiter that decides by one')
      if (!document.shown) throw new Problem(501, 'this version of @sluice/policies shows no document')
      return document.shown()
    },
  }),
]
