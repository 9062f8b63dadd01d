/** `npm run chaos` asks for everything; `npm test` for every scenario once. */
const isFull = process.env.SLUICE_CHAOS !== undefined
/** Scenarios that `npm run chaos` is to try, if not all. */
const asked = process.env.SLUICE_CHAOS?.split(' ').filter((name) => name !== '') ?? []
const seed = Number(process.env.SLUICE_SEED ?? Date.now() % 1_000_000)

export const effort = {
  seed,
  isFull,
  /** How much of something there is to be. */
  of: (full: number, usual: number) => (isFull ? full : usual),
  chosen: (names: readonly string[]) => (asked.length > 0 ? names.filter((name) => asked.includes(name)) : names),
}
