import type { ReadDocument } from '@sluice/policies'
import type { PlayedDocument } from '../documents.js'
import { copied } from '../formats/texts.js'
import type { RecordContext } from './record-context.js'

type Matched = ReturnType<PlayedDocument['policies']['match']>

/** The policies that apply to requests, as a guard takes them. */
export type Matcher = Pick<PlayedDocument['policies'], 'byName'> & { match(context: RecordContext): Matched }

/** Paths whose policies are remembered. */
const MAX_PATHS = 10_000

/** Remembers which policies are for a path, where nothing else of a request decides that. */
export function matcherOf({ data, policies }: PlayedDocument): Matcher {
  if (!isByPath(data)) return policies
  const { byName } = policies
  const known = new Map<string, Matched>()
  const hasPaths = matchesOf(data).some(({ paths }) => paths !== undefined)
  return {
    byName,
    match(context) {
      const path = hasPaths ? context.path : ''
      let matched = known.get(path)
      if (matched === undefined && !known.has(path)) {
        matched = policies.match(context)
        if (known.size >= MAX_PATHS) known.clear()
        known.set(copied(path), matched)
      }
      return matched
    },
  }
}

function isByPath(data: ReadDocument): boolean {
  if ((data.overrides?.length ?? 0) > 0) return false
  if (Object.values(data.policies ?? {}).some((each) => (each as { tier?: unknown }).tier !== undefined)) return false
  return matchesOf(data).every(({ methods, hosts, headers }) => !methods && !hosts && !headers)
}

function matchesOf({ policies = {} }: ReadDocument): Readonly<Record<string, unknown>>[] {
  return Object.values(policies).map((each) => (each as { match?: Record<string, unknown> }).match ?? {})
}
