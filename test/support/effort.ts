export type Effort = 'quick' | 'usual' | 'full'

/** The effort of tests that find more by trying more: `quick` in `npm run check`, `full` in `npm run deep`. @default 'usual' */
const effort = (process.env.SLUICE_EFFORT ?? 'usual') as Effort

/** The value for the present effort; `quick` equals `usual` by default. */
export function byEffort<T>({ usual, full, quick = usual }: { quick?: T; usual: T; full: T }): T {
  return { quick, usual, full }[effort]
}
