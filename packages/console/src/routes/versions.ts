import type { CheckedOptions } from '../options.js'
import { Problem } from '../problem.js'
import type { PolicyVersions } from '../versions.js'
import { byOperator, documentOf, inTime, LIMITER } from './document.js'
import { object, route } from './route.js'

interface VersionOf {
  /** The limiter of the document. */
  readonly limiter?: string
  readonly version: number
}

const NUMBER = { type: 'integer', minimum: 1, maximum: Number.MAX_SAFE_INTEGER } as const
const VERSION = { ...NUMBER, description: 'One of the last twenty versions.' } as const

export const VERSIONS = [
  route<Pick<VersionOf, 'limiter'>>({
    method: 'POST',
    path: '/api/versions',
    id: 'versions',
    summary: 'The last twenty versions of a document in Redis or PostgreSQL: who saved them, when, and what changed.',
    may: 'read',
    body: object({ limiter: LIMITER }),
    answer:
      'Versions, newest first. The first is in force. canSave says whether the console can put another one in force.',
    async run({ console: parts, body: { limiter } }) {
      const versions = versionsOf(parts, limiter)
      return { versions: await inTime(versions.list()), canSave: versions.canSave }
    },
  }),
  route<VersionOf>({
    method: 'POST',
    path: '/api/rollback/plan',
    id: 'rollbackPlan',
    summary: 'The effect that a rollback to a version would have. Changes nothing.',
    may: 'read',
    body: object({ limiter: LIMITER, version: VERSION }, 'version'),
    answer: 'The differences from the version in force, whether used units still count, and the version to expect.',
    async run({ console: parts, body: { limiter, version } }) {
      return (await inTime(versionsOf(parts, limiter).plan(version))) ?? notKept()
    },
  }),
  route<VersionOf & { readonly expected: number }>({
    method: 'POST',
    path: '/api/rollback',
    id: 'rollback',
    summary: 'Puts an earlier version of a document in force again, as the newest.',
    may: 'act',
    body: object(
      {
        limiter: LIMITER,
        version: VERSION,
        expected: { ...NUMBER, description: 'The version in force that was shown: another one is a conflict.' },
      },
      'version',
      'expected',
    ),
    answer: 'The version that is in force then.',
    async run({ console: parts, operator, body: { limiter, ...to } }) {
      const versions = versionsOf(parts, limiter)
      if (!versions.canSave) {
        const instead = 'give policies.from a connection as save, or use sluice rollback in a terminal'
        throw new Problem(501, `the console has no connection that may write this document: ${instead}`)
      }
      const by = byOperator(parts, operator.name)
      return { version: (await inTime(versions.rollback(to, by))) ?? notKept() }
    },
  }),
]

/** @throws Problem */
function versionsOf(parts: CheckedOptions<never>, limiter: string | undefined): PolicyVersions {
  const { versions } = documentOf(parts, limiter, 'limits in code have the versions of the code')
  if (versions) return versions
  const why = 'this document has no versions here, as it is in a file or in code'
  throw new Problem(501, `${why}: change it there, or keep it in Redis or PostgreSQL by sluice apply`)
}

/** @throws Problem */
function notKept(): never {
  throw new Problem(404, 'this version is not kept: the last twenty are')
}
