import type { HttpContext, MatchedPolicies, PolicySource } from '@sluice/core'
import { compile } from './compile/compile.js'
import type { CompiledPolicies } from './compile/compiled-policies.js'
import type { ANY_RESOLVER, Resolvers } from './compile/resolvers.js'
import { type LocatedProblem, PoliciesError } from './document/problem.js'
import type { Loaded, PoliciesSource } from './sources/source.js'
import { dataIn } from './sources/source.js'

/** Policies in force: what `rateLimit({ policies })` takes. */
// biome-ignore lint/suspicious/noExplicitAny: a document serves any framework's requests
export class Policies implements PolicySource<any> {
  readonly #source: PoliciesSource
  readonly #resolvers: Resolvers
  #compiled: CompiledPolicies
  #version: string

  private constructor(source: PoliciesSource, resolvers: Resolvers, compiled: CompiledPolicies, version: string) {
    this.#source = source
    this.#resolvers = resolvers
    this.#compiled = compiled
    this.#version = version
  }

  /** @internal Use `policies.from()`. */
  static async load(source: PoliciesSource, resolvers: Resolvers): Promise<Policies> {
    const { compiled, version } = made(await loaded(source), resolvers)
    return new Policies(source, resolvers, compiled, version)
  }

  /** Of the document in force: another text for another document. */
  get version(): string {
    return this.#version
  }

  // biome-ignore lint/suspicious/noExplicitAny: as above
  get byName(): ReadonlyMap<string, MatchedPolicies<any>> {
    return this.#compiled.byName
  }

  // biome-ignore lint/suspicious/noExplicitAny: as above
  match(context: HttpContext<any>): ReturnType<CompiledPolicies['match']> {
    return this.#compiled.match(context)
  }

  /**
   * Reads the document again, and takes it if it is right.
   *
   * @throws PoliciesError with all that is wrong; the document from before stays in force
   */
  async reload(): Promise<void> {
    const { compiled, version } = made(await loaded(this.#source), this.#resolvers)
    this.#compiled = compiled
    this.#version = version
  }

  /** Ends what keeps the policies up to date. Those in force stay. */
  async close(): Promise<void> {
    await this.#source.close?.()
  }
}

async function loaded(source: PoliciesSource): Promise<Loaded> {
  try {
    return await source.load()
  } catch (error) {
    const message = `expected a document that can be read: ${(error as Error).message}`
    throw new PoliciesError([{ source: source.name, line: undefined, column: undefined, path: '', message }])
  }
}

function made(document: Loaded, resolvers: Resolvers): { compiled: CompiledPolicies; version: string } {
  const { value, problems, located } = dataIn(document)
  if (problems.length > 0) throw new PoliciesError(located(problems))
  const { compiled, problems: wrong } = compile(value, resolvers)
  if (!compiled) throw new PoliciesError(located(wrong))
  return { compiled, version: document.version }
}

/**
 * All that is wrong with a document; nothing where it is right.
 *
 * @param text YAML or JSON
 * @param name how problems call it, such as the path of its file
 * @param resolvers those that code registers; `'any'` takes every name
 */
export function problemsIn(
  text: string,
  name: string,
  resolvers: Resolvers | typeof ANY_RESOLVER = {},
): readonly LocatedProblem[] {
  const { value, problems, located } = dataIn({ name, version: '', text })
  if (problems.length > 0) return located(problems)
  return located(compile(value, resolvers).problems)
}
