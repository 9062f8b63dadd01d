import { randomFrom } from '../contract/policies.js'

/** `npm run chaos` asks for everything; `npm test` for every scenario once, and on the build for a few. */
const isFull = process.env.SLUICE_CHAOS !== undefined
const isAgain = !isFull && process.env.SLUICE_TEST === 'built'
const seed = Number(process.env.SLUICE_SEED ?? Date.now() % 1_000_000)

export const effort = {
  seed,
  isFull,
  /** Rounds of trouble for each scenario. */
  rounds: isFull ? 5 : 1,
  /** Processes under load. */
  apps: isFull ? 4 : 2,
  /** Before, between and after troubles. */
  calmMs: isFull ? 600 : 250,
  timeoutMs: isFull ? 180_000 : 60_000,
  /** The processes run the built packages either way, so that all need not be tried twice. */
  chosen(names: readonly string[]): readonly string[] {
    const asked = process.env.SLUICE_CHAOS?.split(' ').filter((name) => name !== '') ?? []
    if (asked.length > 0) return names.filter((name) => asked.includes(name))
    if (!isAgain) return names
    const random = randomFrom(seed)
    const first = random(names.length)
    return names.filter((_, i) => (i - first + names.length) % names.length < 3)
  },
}
