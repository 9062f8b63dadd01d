import type { ChangesQuery } from '@sluice/core'
import { CHANGES as STORE_CHANGES } from '@sluice/core/store'
import { Problem } from '../problem.js'
import { object, PAGE, route } from './route.js'

export const CHANGES = [
  route<ChangesQuery>({
    method: 'POST',
    path: '/api/changes',
    id: 'changes',
    summary: 'The last changes by operators: who, what, before and after.',
    may: 'read',
    body: object({
      cursor: PAGE.cursor,
      max: PAGE.max,
      by: { type: 'string', maxLength: 100, description: 'Changes by this person alone.' },
      action: {
        type: 'string',
        minLength: 1,
        maxLength: 40,
        description: 'Changes of this kind alone, such as block.',
      },
    }),
    answer: 'Changes, newest first, and the cursor of the next page.',
    run({ console: { store }, body }) {
      const changes = store[STORE_CHANGES]
      if (!changes) throw new Problem(501, 'this store keeps no log of changes')
      return changes.list(body)
    },
  }),
]
