import { groupBy, inLine, quoted } from '@sluice/core/internal'
import { HIDDEN_FIELDS } from '../problems/without-clients.js'
import { readText } from './read.js'
import type { ReadDocument } from './read-document.js'

/** Most fields of one policy, or different limits of its overrides, that are shown. */
const MAX_SHOWN = 20

type Overrides = NonNullable<ReadDocument['overrides']>

/** A field that differs. Undefined if it is absent. */
interface Change {
  readonly path: string
  readonly before: string | undefined
  readonly after: string | undefined
}

/** Texts of versions, newest first. Plain data, so that it can be posted to a thread. */
export interface TextsToCompare {
  readonly texts: readonly string[]
}

/** The differences of each text from the next one, of the last from none. Undefined if one of the two cannot be read. */
export function compareTexts({ texts }: TextsToCompare): (readonly string[] | undefined)[] {
  const documents = texts.map((text) => {
    const { value, problems } = readText(text)
    return problems.length > 0 ? undefined : ((value ?? {}) as ReadDocument)
  })
  return documents.map((document, i) => {
    const before = i + 1 < documents.length ? documents[i + 1] : {}
    return document && before && differencesBetween(before, document)
  })
}

/**
 * The differences between two documents: a line for each policy, `+` added, `-` removed, `~` changed. Below a changed one come
 * its fields with their old and new values. Overrides show their limits and the number of clients, never which.
 */
export function differencesBetween(from: ReadDocument, to: ReadDocument): string[] {
  const [byPolicy, newByPolicy] = [overridesByPolicy(from), overridesByPolicy(to)]
  const carry = changesIn(from.carry ?? 'keep', to.carry ?? 'keep', 'carry').flatMap(linesOf)
  return [
    ...carry.filter((line) => !line.endsWith(' keep')),
    ...keysOf(to.policies, from.policies).flatMap((name) =>
      policyLines(`policy ${name}`, own(from.policies, name), own(to.policies, name)),
    ),
    ...[...new Set([...newByPolicy.keys(), ...byPolicy.keys()])].flatMap((policy) =>
      overrideLines(`overrides of ${policy}`, byPolicy.get(policy) ?? [], newByPolicy.get(policy) ?? []),
    ),
  ].map(inLine)
}

function policyLines(title: string, before: unknown, after: unknown): string[] {
  const changes = changesIn(before, after, '')
  if (before === undefined) return [`+ ${title}: ${summaryOf(changes)}`]
  if (after === undefined) return [`- ${title}: ${summaryOf(changes)}`]
  return changes.length === 0 ? [] : [`~ ${title}`, ...shortened(changes.flatMap(linesOf)).map((line) => `  ${line}`)]
}

function overrideLines(title: string, before: Overrides, after: Overrides): string[] {
  if (isEqual(before.map(textOf).sort(), after.map(textOf).sort())) return []
  const [counts, newCounts] = [countsOf(before), countsOf(after)]
  const linesFor = (sign: string, these: ReadonlyMap<string, number>, others: ReadonlyMap<string, number>) =>
    [...these].flatMap(([limits, count]) => {
      const more = count - (others.get(limits) ?? 0)
      return more > 0 ? [`${sign} ${limits} (${more} override${more === 1 ? '' : 's'})`] : []
    })
  const lines = [...linesFor('-', counts, newCounts), ...linesFor('+', newCounts, counts)]
  const sign = before.length === 0 ? '+' : after.length === 0 ? '-' : '~'
  const count = [...new Set([before.length, after.length].filter((number) => number > 0))].join(' before, now ')
  const shown = lines.length > 0 ? shortened(lines) : ['~ other clients, ends or reasons']
  return [`${sign} ${title} (${count})`, ...shown.map((line) => `  ${line}`)]
}

/** Numbers of overrides with the same limits, by these. */
function countsOf(overrides: Overrides): Map<string, number> {
  const counts = new Map<string, number>()
  for (const { limits } of overrides as readonly { readonly limits?: unknown }[]) {
    const text = summaryOf(changesIn(undefined, limits, 'limits'))
    counts.set(text, (counts.get(text) ?? 0) + 1)
  }
  return counts
}

function overridesByPolicy({ overrides = [] }: ReadDocument): Map<string, Overrides> {
  return groupBy(overrides, ({ policy }) => policy)
}

/** The fields that differ, each by its path. The path in a policy's only limit is just the field. */
function changesIn(before: unknown, after: unknown, path: string): Change[] {
  if (isEqual(before, after)) return []
  if (HIDDEN_FIELDS.test(path)) return [{ path, before: before && 'not shown', after: after && 'not shown' } as Change]
  const isOnly = [before, after].every((side) => side === undefined || (Array.isArray(side) && side.length === 1))
  const [parts, newParts] = [partsOf(before, isOnly), partsOf(after, isOnly)]
  if (parts && newParts) {
    return keysOf(newParts, parts).flatMap((key) => changesIn(own(parts, key), own(newParts, key), joined(path, key)))
  }
  return [{ path, before: shownValue(before), after: shownValue(after) }]
}

/** The parts of a value, by their keys. Limits of a list are named by their names or windows, as far as these are unique. */
function partsOf(value: unknown, isOnly: boolean): Record<string, unknown> | undefined {
  if (value === undefined) return {}
  if (typeof value !== 'object' || value === null) return undefined
  if (!Array.isArray(value)) return value as Record<string, unknown>
  if (!value.every((item) => typeof item === 'object' && item !== null)) return undefined
  const labels = value.map(({ name, window, every }) => name ?? window ?? every)
  const isOwn = (label: unknown) => label !== undefined && labels.indexOf(label) === labels.lastIndexOf(label)
  return Object.fromEntries(
    value.map((item, i) => [isOnly ? '' : `[${isOwn(labels[i]) ? labels[i] : i}]`, item] as const),
  )
}

function joined(path: string, key: string): string {
  if (key === '') return path === 'limits' ? '' : path
  return path === '' || key.startsWith('[') ? path + key : `${path}.${key}`
}

function shownValue(value: unknown): string | undefined {
  if (value === undefined) return undefined
  const text = textOf(value)
  return /^"[\w./:+*-]{1,60}"$/.test(text) ? text.slice(1, -1) : typeof value === 'string' ? quoted(value) : cut(text)
}

function cut(text: string): string {
  return text.length > 60 ? `${text.slice(0, 60)}…` : text
}

function linesOf({ path, before, after }: Change): string[] {
  return [
    ...(before === undefined ? [] : [`- ${path}: ${before}`]),
    ...(after === undefined ? [] : [`+ ${path}: ${after}`]),
  ]
}

/** The fields that are added or removed, in a line. */
function summaryOf(changes: readonly Change[]): string {
  return shortened(changes.map(({ path, before, after }) => `${path}: ${after ?? before}`)).join(', ')
}

function shortened(lines: readonly string[]): readonly string[] {
  return lines.length > MAX_SHOWN ? [...lines.slice(0, MAX_SHOWN), `… and ${lines.length - MAX_SHOWN} more`] : lines
}

function keysOf(first: object = {}, second: object = {}): string[] {
  return [...new Set([...Object.keys(first), ...Object.keys(second)])]
}

/** Not a property of every object, such as `toString`. */
function own(record: Readonly<Record<string, unknown>> = {}, key: string): unknown {
  return Object.hasOwn(record, key) ? record[key] : undefined
}

function textOf(value: unknown): string {
  return JSON.stringify(value) ?? ''
}

function isEqual(one: unknown, other: unknown): boolean {
  return textOf(one) === textOf(other)
}
