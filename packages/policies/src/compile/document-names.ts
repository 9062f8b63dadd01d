import { freeLimitName } from '@sluice/core/internal'
import { type Path, type Problem, shown } from '../problems/problem.js'

/** The longest name of a limit. */
const MAX_LENGTH = 64
/** Names of limits that are equal in so many characters may meet once they have a number at their end. */
const STEM_LENGTH = MAX_LENGTH - '-123456'.length

/** The numbers at the ends of names with one stem. */
interface Numbers {
  readonly policy: string
  /** The first one that no earlier policy has. */
  readonly from: number
  /** The first one that no policy has. */
  next: number
}

/**
 * Names that no two policies of a document share, in whatever case, as any of them may match a request together: of limits, and of
 * units.
 */
export class DocumentNames {
  /** The policy of each name. */
  readonly #policies = new Map<string, string>()
  /** Without them, a document of equal long names would try them all for each. */
  readonly #numbers = new Map<string, Numbers>()
  readonly #units = new Map<string, string>()

  /** A name for a limit of a list: `base`, or the same with a number. `list`: the names of the list so far. */
  nameFor(base: string, policy: string, list: Set<string>): string {
    const whole = base.slice(0, MAX_LENGTH)
    const stem = base.slice(0, STEM_LENGTH).toLowerCase()
    const has = (name: string) => list.has(name) || (this.#policies.get(name) ?? policy) !== policy
    const add = (name: string) => {
      list.add(name)
      this.#policies.set(name, policy)
    }
    const known = this.#numbers.get(stem)
    const numbers = known?.policy === policy ? known : { policy, from: known?.next ?? 2, next: known?.next ?? 2 }
    const name = freeLimitName(whole, { has, add }, numbers.from)
    if (name === whole) return name
    numbers.next = Math.max(numbers.next, Number(name.slice(name.lastIndexOf('-') + 1)) + 1)
    this.#numbers.set(stem, numbers)
    return name
  }

  /** A unit that differs from one of another limit by case alone: costs and headers name units. */
  checkUnit(unit: string, path: Path, problems: Problem[]): void {
    const known = this.#units.get(unit.toLowerCase())
    if (known === undefined) this.#units.set(unit.toLowerCase(), unit)
    else if (known !== unit) {
      const message = `expected units that differ by more than case, got ${shown(unit)} beside ${shown(known)}`
      problems.push({ path, message })
    }
  }
}
