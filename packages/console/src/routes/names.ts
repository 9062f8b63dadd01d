import type { NamedIdentity } from '../identity/given.js'
import { displayNames } from '../identity/names.js'
import { Problem } from '../problem.js'
import { object, route } from './route.js'

/** Identities of a request. */
const MAX_IDENTITIES = 100

export const NAMES = [
  route<{ readonly identities: readonly NamedIdentity[] }>({
    method: 'POST',
    path: '/api/names',
    id: 'names',
    summary: 'Display names of identities, by the function nameOf of the application.',
    may: 'read',
    body: object(
      {
        identities: {
          type: 'array',
          maxItems: MAX_IDENTITIES,
          items: object(
            {
              kind: { type: 'string', minLength: 1, maxLength: 256 },
              value: { type: 'string', minLength: 1, maxLength: 256, description: 'As in an answer.' },
            },
            'kind',
            'value',
          ),
        },
      },
      'identities',
    ),
    answer:
      'A name for each identity, in their order: a text of a stranger of up to 100 characters, or null. isLate: the time was over for some.',
    async run({ console: { nameOf }, body: { identities } }) {
      if (!nameOf) throw new Problem(501, 'this console was given no nameOf')
      const { names, isLate } = await displayNames(nameOf, identities)
      return isLate ? { names, isLate } : { names }
    },
  }),
]
