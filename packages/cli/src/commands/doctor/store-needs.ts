import { commandsNeeded, commandsOfBlocks } from '@sluice/core/internal'

export { KEY_LAYOUT } from '@sluice/core/internal'

/** The default of `redisStore`. */
export const DEFAULT_PREFIX = 'sluice:'

/** The default of `redisStore`. */
export const DEFAULT_STORE_TIMEOUT_MS = 100

export interface NeededCommand {
  readonly words: readonly string[]
  /** The feature that fails without it. Undefined for every decision. */
  readonly feature?: string
}

/** Every command that scripts of the store call, on a key that nothing uses. */
export function neededCommands(key: string): readonly NeededCommand[] {
  const always = [['TIME'], ['EXISTS', key], ...commandsNeeded(key, new Set())]
  const known = new Set(always.map(([name]) => name))
  const beyond = (feature: string, commands: readonly string[][]): NeededCommand[] => {
    const added = commands.filter(([name]) => !known.has(name))
    for (const [name] of added) known.add(name)
    return added.map((words) => ({ words, feature }))
  }
  return [
    ...always.map((words) => ({ words })),
    ...beyond('slidingLog, the default limit,', commandsNeeded(key, new Set(['log']))),
    ...beyond('concurrency', commandsNeeded(key, new Set(['concurrency']))),
    ...beyond('block() and bans', commandsNeeded(key, new Set(), true)),
    ...beyond('block() and bans', commandsOfBlocks(key)),
  ]
}
