import { CHANGES as STORE_CHANGES } from '@sluice/core/store'
import { Problem } from '../problem.js'
import { object, PAGE, route } from './route.js'

export const CHANGES = [
  route<{ readonly cursor?: string; readonly max?: number }>({
    method: 'POST',
    path: '/api/changes',
    id: 'changes',
    summary: 'The last changes by operators: who, what, before and after.',
    may: 'read',
    body: object({ cursor: PAGE.cursor, max: PAGE.max }),
    answer: 'Changes, newest first, and the cursor of the next page.',
    run({ console: { store }, body: { cursor, max = 100 } }) {
      const changes = store[STORE_CHANGES]
      if (!changes) throw new Problem(501, 'this store keeps no log of changes')
      return changes.list({ max, ...(cursor !== undefined && { cursor }) })
    },
  }),
]
