/** `npm run chaos` asks for everything; `npm test` for some scenarios, once. */
const isFull = process.env.SLUICE_CHAOS !== undefined
/** One of each kind: a server that ends, connections that break, a new master, moving slots, processes that are killed. */
const BRIEFLY = ['kill', 'cut', 'failover', 'reshard', 'apps']
/** Scenarios that `npm run chaos` is to try, if not all. */
const asked = process.env.SLUICE_CHAOS?.split(' ').filter((name) => name !== '') ?? []
const seed = Number(process.env.SLUICE_SEED ?? Date.now() % 1_000_000)

export const effort = {
  seed,
  isFull,
  /** How much of something there is to be. */
  of: (full: number, usual: number) => (isFull ? full : usual),
  chosen: (names: readonly string[]) => {
    const chosen = isFull ? asked : BRIEFLY
    return chosen.length > 0 ? names.filter((name) => chosen.includes(name)) : names
  },
}
