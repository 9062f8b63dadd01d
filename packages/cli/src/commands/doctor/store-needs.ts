/** The version of the layout of keys that this release writes. */
export const LAYOUT = 'v1'

export const DEFAULT_PREFIX = 'sluice:'

export const DEFAULT_STORE_TIMEOUT_MS = 100

/** What every decision needs, as words of a command on a key. */
const DECISIONS = (key: string) => [
  ['TIME'],
  ['GET', key],
  ['SET', key, '', 'PX', '1'],
  ['SETRANGE', key, '0', ''],
  ['DEL', key],
  ['EXISTS', key],
]

/** By what needs them: commands beyond those of every decision. */
const FEATURES = (key: string): Readonly<Record<string, string[][]>> => ({
  'the default limit (slidingLog)': [
    ['GETRANGE', key, '0', '0'],
    ['PEXPIRE', key, '1'],
  ],
  concurrency: [
    ['ZADD', key, '0', 'a'],
    ['ZCARD', key],
    ['ZCOUNT', key, '0', '0'],
    ['ZRANGE', key, '0', '0'],
    ['ZRANGEBYSCORE', key, '0', '0'],
    ['ZREM', key, 'a'],
    ['ZREMRANGEBYSCORE', key, '0', '0'],
    ['ZSCORE', key, 'a'],
  ],
  'block()': [['PTTL', key]],
})

export interface NeededCommand {
  readonly words: readonly string[]
  /** What fails without it; undefined for every decision. */
  readonly feature?: string
}

/** Every command that scripts of the store call. */
export function neededCommands(key: string): readonly NeededCommand[] {
  const features = Object.entries(FEATURES(key)).flatMap(([feature, commands]) =>
    commands.map((words) => ({ words, feature })),
  )
  return [...DECISIONS(key).map((words) => ({ words })), ...features]
}
