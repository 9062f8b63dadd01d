/** The scenarios that `npm run chaos` names, if any. */
const named = process.env.SLUICE_CHAOS?.split(' ').filter((name) => name !== '') ?? []

export const SEED = Number(process.env.SLUICE_SEED ?? Date.now() % 1_000_000)

export const chosen = (names: readonly string[]) =>
  named.length > 0 ? names.filter((name) => named.includes(name)) : names
