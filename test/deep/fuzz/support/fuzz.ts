import { readFileSync } from 'node:fs'
import fc from 'fast-check'
import { test } from 'vitest'

/** What `npm run fuzz` asks for; without it each property gets the same 200 inputs in every run. */
const asked = {
  inputs: Number(process.env.SLUICE_FUZZ_INPUTS ?? 200),
  seconds: Number(process.env.SLUICE_FUZZ_SECONDS ?? 60),
  seed: Number(process.env.SLUICE_FUZZ_SEED ?? 20_261_120),
}

/** Inputs of one seed: between two of these the test runner gets to breathe. */
const PER_SEED = 20_000

export interface Property<Input> {
  readonly inputs: fc.Arbitrary<Input>
  /** Throws or rejects where the promise is broken. */
  readonly check: (input: Input) => unknown
  /** One input where others have so many: those that take connections and timers are dear. @default 1 */
  readonly dearness?: number
  /** At least so many in every run, where `dearness` would leave too few. @default 1 */
  readonly least?: number
  /** Tried first, always. */
  readonly examples?: readonly Input[]
}

/** An input that once broke a promise: it is among the first `inputs` of its seed. */
interface Found {
  readonly target: string
  readonly promise: string
  readonly seed: number
  readonly inputs: number
  /** What it was. */
  readonly what: string
}

const found: readonly Found[] = JSON.parse(readFileSync(new URL('../found.json', import.meta.url), 'utf8'))

/**
 * A promise that holds whatever the input. `target` is the name of the test's file, less `.test.ts`.
 * First the inputs that broke it once, then new ones.
 */
export function fuzz<Input>(target: string, promise: string, property: Property<Input>): void {
  test(promise, { timeout: asked.seconds * 1000 + 60_000 }, async () => {
    const dearness = property.dearness ?? 1
    for (const known of found) {
      if (known.target !== target || known.promise !== promise) continue
      await run(target, property, known.seed, known.inputs)
    }
    const stopAt = performance.now() + asked.seconds * 1000
    let left = Math.max(property.least ?? 1, Math.ceil(asked.inputs / dearness))
    let tried = 0
    for (let seed = asked.seed; left > 0 && performance.now() < stopAt; seed++) {
      const inputs = Math.min(left, Math.ceil(PER_SEED / dearness))
      tried += await run(target, property, seed, inputs, stopAt)
      left -= inputs
      await new Promise((resolve) => setImmediate(resolve))
    }
    if (process.env.SLUICE_FUZZ_INPUTS) console.log(`${target}: ${promise}: ${tried} inputs`)
  })
}

/** Resolves to how many inputs were tried before `stopAt`. */
async function run<Input>(
  target: string,
  property: Property<Input>,
  seed: number,
  inputs: number,
  stopAt = Number.POSITIVE_INFINITY,
): Promise<number> {
  const { check, examples = [], dearness = 1 } = property
  const tried = fc.asyncProperty(property.inputs, async (input) => void (await check(input)))
  const details = await fc.check(tried, {
    seed,
    numRuns: inputs,
    examples: examples.map((example) => [example]),
    // What is dear to try is dear to make small.
    endOnFailure: dearness > 1,
    // A machine that is busy with other things tries fewer of them.
    ...(stopAt < Number.POSITIVE_INFINITY && { interruptAfterTimeLimit: Math.max(1, stopAt - performance.now()) }),
  })
  if (!details.failed) return details.numRuns
  const again = `npm run fuzz -- ${target} ${seed}`
  throw new Error(`after ${details.numRuns} inputs (again: ${again})\n${fc.defaultReportMessage(details)}`, {
    cause: details.errorInstance,
  })
}
