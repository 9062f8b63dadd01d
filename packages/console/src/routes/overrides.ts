import { isSecretKind, writtenHash } from '@sluice/core/internal'
import { byKind, counted as countedAs, type GivenIdentity, IDENTITY } from '../identity/identity.js'
import type { CheckedOptions } from '../options.js'
import type { OverrideBody, PolicyOverrides } from '../overrides.js'
import { Problem } from '../problem.js'
import { byOperator, documentOf, inTime, LIMITER } from './document.js'
import { object, PAGE, POLICY, route } from './route.js'

interface OverrideFields {
  /** The limiter of the document. */
  readonly limiter?: string
  readonly policy: string
  readonly identity: GivenIdentity
  readonly limits: readonly object[]
  readonly until: string | number
  readonly reason?: string
  readonly expected?: number
}

const OF = {
  limiter: LIMITER,
  policy: { ...POLICY, description: 'The policy of the document.' },
  identity: IDENTITY,
} as const
const EXPECTED = {
  type: 'integer',
  minimum: 0,
  maximum: Number.MAX_SAFE_INTEGER,
  description: 'The version that the plan showed: a change in between is a conflict.',
} as const
const FIELDS = {
  ...OF,
  limits: {
    type: 'array',
    maxItems: 20,
    items: { type: 'object' },
    description: 'As limits of an override in a document.',
  },
  until: {
    oneOf: [
      { type: 'string', maxLength: 40, description: 'A time with a zone, such as 2030-01-31T00:00:00Z.' },
      { type: 'integer', minimum: 0, maximum: 2 ** 48 - 1, description: 'Ms since 1970.' },
    ],
  },
  reason: { type: 'string', maxLength: 200 },
  expected: EXPECTED,
} as const

export const OVERRIDES = [
  route<{ readonly limiter?: string; readonly policy?: string; readonly cursor?: string; readonly max?: number }>({
    method: 'POST',
    path: '/api/overrides',
    id: 'overrides',
    summary: 'A page of the overrides beside a document: each is for one client, until a date.',
    may: 'read',
    body: object({ limiter: LIMITER, policy: POLICY, cursor: PAGE.cursor, max: PAGE.max }),
    answer: 'Overrides in force, and the cursor of the next page.',
    run: ({ console: parts, body: { limiter, ...query } }) => inTime(overridesOf(parts, limiter).list(query)),
  }),
  route<OverrideFields>({
    method: 'POST',
    path: '/api/override/plan',
    id: 'overridePlan',
    summary: 'The effect that an override would have: who is affected, and how. Changes nothing.',
    may: 'read',
    body: object(FIELDS, 'policy', 'identity', 'limits', 'until'),
    answer: 'The changed limits, the version to expect, and the lines of a document with the same effect.',
    run: ({ console: parts, body }) => inTime(overridesOf(parts, body.limiter).plan(overrideIn(body))),
  }),
  route<OverrideFields>({
    method: 'POST',
    path: '/api/override',
    id: 'override',
    summary: 'Changes the limits of one client until a date.',
    may: 'act',
    body: object(FIELDS, 'policy', 'identity', 'limits', 'until'),
    answer: 'The override.',
    async run({ console: parts, operator, body }) {
      const overrides = overridesOf(parts, body.limiter)
      const given = overrideIn(body)
      const { canSave, lines } = await inTime(overrides.plan(given))
      if (!canSave)
        throw new Problem(501, 'these policies cannot be changed from here: paste the lines into the document', {
          lines,
        })
      return { override: await inTime(overrides.set(given, byOperator(parts, operator.name))) }
    },
  }),
  route<Pick<OverrideFields, 'limiter' | 'policy' | 'identity' | 'expected'>>({
    method: 'POST',
    path: '/api/override/remove',
    id: 'overrideRemove',
    summary: 'Ends an override before its date.',
    may: 'act',
    body: object({ ...OF, expected: EXPECTED }, 'policy', 'identity'),
    answer: 'An object: it is ended.',
    async run({ console: parts, operator, body: { limiter, policy, identity, expected } }) {
      const of = { policy, key: keyOf(identity), ...(expected !== undefined && { expected }) }
      const isRemoved = await inTime(overridesOf(parts, limiter).remove(of, byOperator(parts, operator.name)))
      if (!isRemoved) throw new Problem(404, 'the client has no override beside the document')
      return { removed: true }
    },
  }),
]

/** @throws Problem */
function overridesOf(parts: CheckedOptions<never>, limiter: string | undefined): PolicyOverrides {
  const { overrides } = documentOf(parts, limiter, 'limits in code have no overrides, change the code')
  if (overrides) return overrides
  throw new Problem(501, 'this version of @sluice/policies has no overrides beside a document')
}

function overrideIn({ limiter: _, identity, ...rest }: OverrideFields): OverrideBody {
  return { ...rest, key: keyOf(identity) }
}

/** Policies of a document whose overrides are looked for, and the time for that, in ms. */
const MAX_POLICIES = 32
const LOOK_MS = 2000

/** The overrides of a client beside the documents, for these of their policies. Undefined where they are not known. */
export async function ownOverrides(
  { documents }: CheckedOptions<never>,
  identity: GivenIdentity,
  shown: readonly { readonly limiter: string; readonly policy?: string }[],
) {
  if (typeof identity.value !== 'string') return []
  const key = keyOf(identity)
  const found = documents.flatMap(({ name, policies: { overrides } }) => {
    const all = shown.flatMap(({ limiter, policy }) => (limiter === name && policy !== undefined ? [policy] : []))
    return [...new Set(all)].slice(0, MAX_POLICIES).map(async (policy) => {
      const override = await overrides?.get?.({ policy, key })
      return override ? [{ limiter: name, ...override }] : []
    })
  })
  // Neither a network nor a connection that is away keeps the rest from being shown.
  return (await inTime(Promise.all(found), LOOK_MS).catch(() => undefined))?.flat()
}

/** Documents have secrets as hashes: a raw one, such as an API key, is hashed as limits count it. */
function keyOf(identity: GivenIdentity): Readonly<Record<string, string>> {
  const { kind, value } = identity
  if (typeof value !== 'string') throw new Problem(400, 'identity: overrides are for one value of a kind')
  const isWritten = !isSecretKind(kind) || value.startsWith('sha256:')
  const written = isWritten ? value : writtenHash(countedAs(byKind(identity)).value)
  return byKind({ kind, value: written }) as Readonly<Record<string, string>>
}
