import { type Path, type Problem, shown } from '../problems/problem.js'
import { ANY_RESOLVER } from './resolvers.js'

/** The function that a name stands for. Undefined, with a problem, for a name that is not registered. */
export function resolverOf<Resolver>(
  name: string | undefined,
  registered: Readonly<Record<string, Resolver>> | undefined | typeof ANY_RESOLVER,
  option: 'tiers' | 'costs',
  path: Path,
  problems: Problem[],
): Resolver | undefined {
  if (name === undefined || registered === ANY_RESOLVER) return undefined
  if (registered && Object.hasOwn(registered, name)) return registered[name]
  const known = Object.keys(registered ?? {})
  const expected =
    known.length === 0 ? `a resolver, of which code registers none by \`${option}\`` : known.map(shown).join(' or ')
  problems.push({ path, message: `expected ${expected}, got ${shown(name)}` })
  return undefined
}
