import type { OffendersWindow } from '@sluice/core'
import { OFFENDERS } from '@sluice/core/store'
import { Problem } from '../problem.js'
import { refusalsOf } from '../refusals.js'
import { object, POLICY, route } from './route.js'

export const REFUSALS = [
  route({
    method: 'GET',
    path: '/api/refusals',
    id: 'refusals',
    summary: 'The last refusals of every identity, up to 200 of each process, of the last 15 minutes.',
    may: 'read',
    answer: 'Refusals, newest first, up to 1,000, or as many as fit. more says that there are others.',
    run: ({ console: { store } }) => refusalsOf(store),
  }),
  route<{ readonly policy: string; readonly in?: OffendersWindow; readonly top?: number }>({
    method: 'POST',
    path: '/api/offenders',
    id: 'offenders',
    summary: 'The identities that a policy refused most often. For stores with offenders: true.',
    may: 'read',
    body: object(
      {
        policy: { ...POLICY, description: 'The name of a policy.' },
        in: { type: 'string', enum: ['10m', '1h', '1d'] },
        top: { type: 'integer', minimum: 1, maximum: 1000 },
      },
      'policy',
    ),
    answer: 'Identities with the number of their refusals, in descending order.',
    run({ console: { store }, body }) {
      const offenders = store[OFFENDERS]
      if (!offenders) throw new Problem(501, 'this store counts no refusals')
      return offenders.report(body)
    },
  }),
]
