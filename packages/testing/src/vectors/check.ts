import assert, { AssertionError } from 'node:assert/strict'
import { inspect, isDeepStrictEqual } from 'node:util'
import {
  concurrency,
  createLimiter,
  fixedWindow,
  gcra,
  keyed,
  type Limit,
  type Limiter,
  leakyBucket,
  type Store,
  slidingLog,
  slidingWindow,
  tokenBucket,
  type Verdict,
} from '@sluice/core'
import { MIDNIGHT_MS } from '../clock.js'
import { freshKey } from '../fresh-key.js'
import type { Vector, VectorLimit, VectorStep } from './vector.js'

const CONSTRUCTORS = { concurrency, fixedWindow, gcra, leakyBucket, slidingLog, slidingWindow, tokenBucket }

/**
 * Checks a store by a vector. `turn` sets the store's clock.
 *
 * @throws AssertionError
 */
export async function checkVector(vector: Vector, store: Store, turn: Turn): Promise<void> {
  const limits = vector.limits ?? [vector.limit as VectorLimit]
  for (const order of vector.anyOrder ? permutations(limits) : [limits]) await runVector(vector, order, store, turn)
}

/** Sets a clock, in ms. */
type Turn = (nowMs: number) => void

type Subject = string | Readonly<Record<string, string>>

async function runVector(vector: Vector, limits: readonly VectorLimit[], store: Store, turn: Turn): Promise<void> {
  const run = freshKey()
  const limiter = createLimiter<Subject>({
    name: 'vector',
    store,
    limits: limits.map((limit) => makeLimit(limit, run)),
    // Steps name keys that are only unique within their vector.
    key: (subject) => `${run}/${subject as string}`,
    onDeny: vector.onDeny ?? 'none',
  })
  const decided: Verdict[] = []
  for (const [i, step] of vector.steps.entries()) {
    const verdicts = await runStep(limiter, step, turn, decided)
    decided.push(verdicts.at(-1) as Verdict)
    check(verdicts, step, `step ${i + 1}: ${step.why}`)
  }
}

const PERMITS = 'concurrent-requests'

async function runStep(
  limiter: Limiter<Subject>,
  step: VectorStep,
  turn: Turn,
  given: readonly Verdict[],
): Promise<Verdict[]> {
  const { atMs, op = 'consume', cost = 1, key = 'key', times = 1, everyMs } = step
  // A plain cost takes one permit.
  const units = limiter.limits.every(({ unit }) => unit === PERMITS) ? { [PERMITS]: cost } : cost
  const ask = () => limiter[op === 'refund' ? 'peek' : op](key, { cost: units })
  turn(MIDNIGHT_MS + atMs)
  if (op === 'refund') await limiter.refund(key, given[(step.of as number) - 1] as Verdict)
  if (everyMs === undefined) return Promise.all(Array.from({ length: times }, ask))
  const verdicts = []
  for (let i = 0; i < times; i++) {
    turn(MIDNIGHT_MS + atMs + i * everyMs)
    verdicts.push(await ask())
  }
  return verdicts
}

function check(verdicts: readonly Verdict[], { expect: expected }: VectorStep, story: string): void {
  const { admitted, limits, byName, ...fields } = expected
  const last = verdicts.at(-1) as Verdict
  if (admitted !== undefined) {
    assert.equal(verdicts.filter(({ allowed }) => allowed).length, admitted, story)
  }
  checkFields(last, fields, story)
  limits?.forEach((report, i) => checkFields(last.limits[i], report, `${story}: limits[${i}]`))
  for (const [name, report] of Object.entries(byName ?? {})) {
    checkFields(
      last.limits.find((limit) => limit.name === name),
      report,
      `${story}: ${name}`,
    )
  }
}

function checkFields(actual: object | undefined, expected: Readonly<Record<string, unknown>>, story: string): void {
  const shown = Object.fromEntries(
    Object.keys(expected).map((field) => [field, (actual as Record<string, unknown>)?.[field] ?? null]),
  )
  if (isDeepStrictEqual(shown, expected)) return
  const message = `${story}: expected ${inspect(expected)}, got ${inspect(shown)}`
  throw new AssertionError({ message, actual: shown, expected })
}

function makeLimit({ algorithm, key, ...options }: VectorLimit, run: string): Limit<Subject> {
  const make = CONSTRUCTORS[algorithm as keyof typeof CONSTRUCTORS] as (options: object) => Limit<Subject>
  const keyOption = key && {
    key: keyed(`by-${key}`, (subject: Subject) => `${run}/${(subject as Record<string, string>)[key]}`),
  }
  return make({ ...options, ...keyOption })
}

function permutations<T>(items: readonly T[]): T[][] {
  if (items.length < 2) return [[...items]]
  return items.flatMap((item, i) => permutations(items.toSpliced(i, 1)).map((rest) => [item, ...rest]))
}
