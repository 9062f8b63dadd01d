/** The share of a limit from which a client is near it. */
export const NEAR = 0.8
/** Characters of the text of a process. */
const MAX_TEXT = 65_536
const LONGEST = 512
const FORM = 1

/** A client that was near a limit when it was last decided on. */
export interface NearRow {
  /** In texts and answers its id. */
  readonly client: string
  readonly policy: string
  readonly limit: string
  /** The share of the limit that was in use, 0 to 1. */
  readonly used: number
  /** Units that were left. */
  readonly remaining: number
  /** When it was seen, and when nothing would be in use without more requests, at most an hour later: ms since 1970. */
  readonly at: number
  readonly until: number
}

/** Those who will be refused next stand first, and those that have used all of it last. */
export function beforeInNear(one: NearRow, other: NearRow): number {
  const isFull = ({ used }: NearRow) => Number(used >= 1)
  return isFull(one) - isFull(other) || other.used - one.used || other.at - one.at
}

export const isNear = ({ used }: Pick<NearRow, 'used'>): boolean => used >= NEAR

/** Rows as text; as many as fit. */
export function nearText(rows: readonly NearRow[]): string {
  for (let part = rows.length; ; part = Math.floor(part / 2)) {
    const text = JSON.stringify([FORM, rows.slice(0, part).map(valuesOf)])
    if (text.length <= MAX_TEXT) return text
  }
}

const valuesOf = ({ client, policy, limit, used, remaining, at, until }: NearRow) => [
  client,
  policy,
  limit,
  used,
  remaining,
  at,
  until,
]

/** None for a text of another version, or of anyone. */
export function nearIn(text: string | undefined): NearRow[] {
  try {
    const [form, rows] = JSON.parse(text ?? '') as [number, unknown[][]]
    if (form !== FORM) return []
    return rows.map(rowIn)
  } catch {
    return []
  }
}

function rowIn([client, policy, limit, used, remaining, at, until]: unknown[]): NearRow {
  const areTexts = [client, policy, limit].every((text) => typeof text === 'string' && text.length <= LONGEST)
  const areNumbers = [used, remaining, at, until].every((number) => Number.isFinite(number) && (number as number) >= 0)
  if (!areTexts || !areNumbers) throw new Error('no row')
  return { client, policy, limit, used, remaining, at, until } as NearRow
}
