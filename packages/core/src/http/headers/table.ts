import { invalidPolicy } from '../../util/errors.js'
import { knownOptions, oneOf } from '../../util/validate.js'
import { byUnit, instant, shortDuration } from './by-unit.js'
import { draft8, draft11 } from './lists.js'
import { draft6, draft7, LEGACY_RESETS, type LegacyNames, type LegacyReset, legacy } from './single.js'
import type { HeaderWriter } from './writer.js'

/** Every wire form by its name; a new revision of the draft is one more row. */
const WRITERS = {
  'draft-11': draft11,
  'draft-8': draft8,
  'draft-7': draft7,
  'draft-6': draft6,
  legacy: legacy('epoch-seconds'),
  openai: byUnit((unit, field) => `x-ratelimit-${field}-${unit}`, shortDuration),
  anthropic: byUnit((unit, field) => `anthropic-ratelimit-${unit}-${field}`, instant),
} as const satisfies Record<string, HeaderWriter>

export type HeaderFormat =
  | keyof typeof WRITERS
  /** `X-RateLimit-*` with another format of Reset than seconds since 1970, or under your own names. */
  | { readonly format: 'legacy'; readonly reset?: LegacyReset; readonly names?: LegacyNames }

/** One form, several forms with different fields, or none. */
export type HeadersOption = HeaderFormat | readonly HeaderFormat[] | false

/** @throws SluiceError `INVALID_POLICY` */
export function headerWriters(where: string, option: unknown): readonly HeaderWriter[] {
  if (option === false) return []
  const writers = (Array.isArray(option) ? option : [option]).map((format) => writerFor(where, format))
  const owned = writers.flatMap(({ fields }) => fields)
  const lower = owned.map((field) => field.toLowerCase())
  const twice = owned.find((_, i) => lower.indexOf(lower[i] as string) !== i)
  if (twice) invalidPolicy(where, 'headers', `forms of which only one writes ${twice}`, option)
  return writers
}

function writerFor(where: string, format: unknown): HeaderWriter {
  if (typeof format === 'object' && format !== null) {
    knownOptions(`${where}: headers`, format, ['format', 'reset', 'names'])
    const { format: name, reset = 'epoch-seconds', names } = format as Record<string, unknown>
    oneOf(where, 'headers.format', name, ['legacy'])
    return legacy(oneOf(where, 'headers.reset', reset, LEGACY_RESETS), checkedNames(where, names))
  }
  return WRITERS[oneOf(where, 'headers', format, Object.keys(WRITERS) as (keyof typeof WRITERS)[])]
}

/** Fields that define how a response is to be read. A number in them would change that. */
const MEANING =
  /^(connection|content-.*|cookie|date|etag|keep-alive|location|retry-after|set-cookie|te|trailer|transfer-encoding|upgrade|vary|www-authenticate|cache-control)$/i

function checkedNames(where: string, names: unknown): LegacyNames {
  if (names === undefined) return {}
  knownOptions(`${where}: headers.names`, names, ['limit', 'remaining', 'reset'])
  for (const [field, name] of Object.entries(names as LegacyNames)) {
    if (name === undefined || name === false) continue
    if (typeof name === 'string' && /^[\w!#$%&'*+.^`|~-]{1,64}$/.test(name) && !MEANING.test(name)) continue
    invalidPolicy(where, `headers.names.${field}`, 'the name of a header field of its own, or false', name)
  }
  return names as LegacyNames
}
