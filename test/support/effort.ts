export type Effort = 'quick' | 'usual' | 'full'

/** How much tests try where more finds more: `npm run check` asks for `quick`, `npm run deep` for `full`. @default 'usual' */
const effort = (process.env.SLUICE_EFFORT ?? 'usual') as Effort

/** What is tried of something; `quick` is as `usual` where nothing else is said. */
export function byEffort<T>({ usual, full, quick = usual }: { quick?: T; usual: T; full: T }): T {
  return { quick, usual, full }[effort]
}
