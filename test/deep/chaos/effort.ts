/** `npm run chaos` runs every scenario; `npm test` runs some of them once. */
const isFull = process.env.SLUICE_CHAOS !== undefined
/** Connections that break, a new master, and processes that are killed. */
const BRIEFLY = ['cut', 'failover', 'apps']
/** The scenarios that `npm run chaos` names, if any. */
const named = process.env.SLUICE_CHAOS?.split(' ').filter((name) => name !== '') ?? []
const seed = Number(process.env.SLUICE_SEED ?? Date.now() % 1_000_000)

export const effort = {
  seed,
  isFull,
  /** An amount by the kind of run. */
  of: (full: number, usual: number) => (isFull ? full : usual),
  chosen: (names: readonly string[]) => {
    const chosen = isFull ? named : BRIEFLY
    return chosen.length > 0 ? names.filter((name) => chosen.includes(name)) : names
  },
}
