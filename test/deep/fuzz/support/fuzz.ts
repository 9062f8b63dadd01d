import { readFileSync } from 'node:fs'
import fc from 'fast-check'
import { test } from 'vitest'

/** The options of `npm run fuzz`; without it, each property receives the same 200 inputs in every run. */
const options = {
  inputs: Number(process.env.SLUICE_FUZZ_INPUTS ?? 100),
  seconds: Number(process.env.SLUICE_FUZZ_SECONDS ?? 60),
  seed: Number(process.env.SLUICE_FUZZ_SEED ?? 20_261_120),
}

/** Inputs of one seed, after which the test runner can process its own events. */
const PER_SEED = 20_000

export interface Property<Input> {
  readonly inputs: fc.Arbitrary<Input>
  /** Throws or rejects where the promise is broken. */
  readonly check: (input: Input) => unknown
  /** The cost of one input relative to others: inputs with connections and timers are expensive. @default 1 */
  readonly dearness?: number
  /** The least number of inputs in every run, where `dearness` would leave too few. @default 1 */
  readonly least?: number
  /** Inputs that every run tries first. */
  readonly examples?: readonly Input[]
}

/** An input that once broke a promise: it is among the first `inputs` of its seed. */
interface Found {
  readonly target: string
  readonly promise: string
  readonly seed: number
  readonly inputs: number
  /** A description of the failure. */
  readonly what: string
}

const found: readonly Found[] = JSON.parse(readFileSync(new URL('../found.json', import.meta.url), 'utf8'))

/**
 * A promise that holds whatever the input. `target` is the name of the test's file, less `.test.ts`.
 * First the inputs that broke it once, then new ones.
 */
export function fuzz<Input>(target: string, promise: string, property: Property<Input>): void {
  test(promise, { timeout: options.seconds * 1000 + 120_000 }, async () => {
    const dearness = property.dearness ?? 1
    for (const known of found) {
      if (known.target !== target || known.promise !== promise) continue
      await run(target, property, known.seed, known.inputs)
    }
    const stopAt = performance.now() + options.seconds * 1000
    let left = Math.max(property.least ?? 1, Math.ceil(options.inputs / dearness))
    let tried = 0
    for (let seed = options.seed; left > 0 && performance.now() < stopAt; seed++) {
      const inputs = Math.min(left, Math.ceil(PER_SEED / dearness))
      tried += await run(target, property, seed, inputs, stopAt)
      left -= inputs
      await new Promise((resolve) => setImmediate(resolve))
    }
    if (process.env.SLUICE_FUZZ_INPUTS) console.log(`${target}: ${promise}: ${tried} inputs`)
  })
}

/** Resolves to the number of inputs tried before `stopAt`. */
async function run<Input>(
  target: string,
  property: Property<Input>,
  seed: number,
  inputs: number,
  stopAt = Number.POSITIVE_INFINITY,
): Promise<number> {
  const { check, examples = [], dearness = 1 } = property
  let tried = 0
  const attempt = fc.asyncProperty(property.inputs, async (input) => {
    // A busy machine tries fewer of them. One that hangs is waited for, as it says what it waits for.
    if (tried > 0 && performance.now() >= stopAt) return
    tried++
    await check(input)
  })
  const details = await fc.check(attempt, {
    seed,
    numRuns: inputs,
    examples: examples.map((example) => [example]),
    // Expensive inputs are also expensive to shrink.
    endOnFailure: dearness > 1,
  })
  if (!details.failed) return tried
  const again = `npm run fuzz -- ${target} ${seed}`
  throw new Error(`after ${details.numRuns} inputs (again: ${again})\n${fc.defaultReportMessage(details)}`, {
    cause: details.errorInstance,
  })
}
