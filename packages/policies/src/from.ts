import { SluiceError } from '@sluice/core'
import type { Resolvers } from './compile/resolvers.js'
import { Policies } from './policies.js'
import { FileSource } from './sources/file.js'
import type { PoliciesSource } from './sources/source.js'

export interface PoliciesOptions extends Resolvers {
  /** The path of a file, YAML or JSON. */
  readonly file?: string
  /** A document as an object, copied. */
  readonly object?: unknown
  /** Whether a later version may have fewer than half of the policies, limits and overrides. @default false */
  readonly allowShrink?: boolean
}

/**
 * Policies that are data.
 *
 * @example rateLimit({ policies: await policies.from({ file: 'policies.yaml' }), store })
 */
export const policies = Object.freeze({ from })

/**
 * Loads a document, and resolves once its policies are in force.
 *
 * @throws PoliciesError with all that is wrong with it; SluiceError `INVALID_POLICY` for wrong options
 */
async function from(options: PoliciesOptions): Promise<Policies> {
  const { file, object, allowShrink = false, keys, tiers, costs, ...unknown } = options ?? {}
  const [other] = Object.keys(unknown)
  if (other !== undefined)
    wrong(other, 'none of this name (the options are file, object, allowShrink, keys, tiers, costs)')
  if ((file === undefined) === (object === undefined)) wrong('file', 'a source: one of file and object')
  for (const [option, registered] of Object.entries({ keys, tiers, costs })) {
    const all = registered === undefined ? [] : Object.values(registered)
    if (!all.every((each) => typeof each === 'function')) wrong(option, 'functions by their names')
  }
  if (file !== undefined && (typeof file !== 'string' || file === '')) wrong('file', 'the path of a file')
  const source = file === undefined ? objectSource(object) : new FileSource(file)
  if (typeof allowShrink !== 'boolean') wrong('allowShrink', 'true or false')
  const resolvers = { ...(keys && { keys }), ...(tiers && { tiers }), ...(costs && { costs }) }
  return Policies.load(source, { resolvers, allowShrink })
}

function objectSource(object: unknown): PoliciesSource {
  return { name: 'object', load: async () => ({ name: 'object', version: '1', object }) }
}

function wrong(option: string, expected: string): never {
  throw new SluiceError('INVALID_POLICY', `policies.from: ${option}: expected ${expected}`)
}
