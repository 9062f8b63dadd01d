import { randomFrom } from '../../contract/policies.js'

/** `npm run chaos` asks for everything; `npm test` for every scenario once, and on the build for a few. */
const isFull = process.env.SLUICE_CHAOS !== undefined
const isAgain = !isFull && process.env.SLUICE_TEST === 'built'
/** Scenarios that `npm run chaos` is to try, if not all. */
const asked = process.env.SLUICE_CHAOS?.split(' ').filter((name) => name !== '') ?? []
const seed = Number(process.env.SLUICE_SEED ?? Date.now() % 1_000_000)

export const effort = {
  seed,
  isFull,
  /** How much of something there is to be. */
  of: (full: number, usual: number) => (isFull ? full : usual),
  /** Which are tried. The processes run the built packages either way, so on the build a few will do. */
  chosen(names: readonly string[], few: number): readonly string[] {
    if (asked.length > 0) return names.filter((name) => asked.includes(name))
    if (!isAgain) return names
    const first = randomFrom(seed)(names.length)
    return names.filter((_, i) => (i - first + names.length) % names.length < few)
  },
}
