import { failureOf } from './failures.js'

export type Row = Readonly<Record<string, unknown>>

/** Sends one statement, with values for `$1` and so on. */
export type Query = (text: string, values?: readonly unknown[]) => Promise<{ readonly rows: readonly Row[] }>

/** Like `query`, with failures that name the remedy. */
export async function rowsOf(query: Query, text: string, values: readonly unknown[] = []): Promise<readonly Row[]> {
  try {
    return (await query(text, [...values])).rows
  } catch (error) {
    throw failureOf(error)
  }
}

/** A quoted name in SQL, such as that of a schema. */
export function quotedName(name: string): string {
  return `"${name.replaceAll('"', '""')}"`
}
