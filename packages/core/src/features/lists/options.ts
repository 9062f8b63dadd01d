import type { HttpContext } from '../../request/context.js'
import type { List } from '../../store/list.js'

/** Whether a request, or another argument of the limiter, is on a list: true or false, at once. */
export type ListPredicate<Subject> = (subject: Subject, context: HttpContext<Subject>) => boolean

export type ListItem<Subject> = List | ListPredicate<Subject>

/** One list, or several. */
export type ListsOption<Subject> = ListItem<Subject> | readonly ListItem<Subject>[]

/** The identities that are denied, and how. `http` adds `respond` to it. */
export interface DenyOptions<Subject> {
  readonly lists: ListsOption<Subject>
}

export interface ListOptions<Subject> {
  /**
   * Identities that are admitted without being charged: one list or predicate, or several.
   *
   * A list is `list({ … })`, `ipRanges([…])` or `fileList(path)`; a predicate is a function of the request. An entry
   * here wins over any in `deny` but one of the same kind that is as narrow. Among ranges of addresses the smallest
   * wins, and a tie denies.
   * @default none
   */
  readonly allow?: ListsOption<Subject>
  /** Identities that are refused: verdicts have the reason `denied`, responses the status 403. @default none */
  readonly deny?: ListsOption<Subject> | DenyOptions<Subject>
}
