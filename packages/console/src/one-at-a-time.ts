import { Problem } from './problem.js'

/** Questions that wait for the one before them. */
const MAX_WAITING = 20
/** An answer is given again for as long, in ms. */
const KEPT_MS = 2000

/** Answers questions that read much of the store, one at a time. */
export class OneAtATime<Answer> {
  readonly #answers = new Map<string, Promise<Answer>>()
  #before: Promise<unknown> = Promise.resolve()

  /** @param question equal ones share an answer. @throws Problem */
  answer(question: string, read: () => Promise<Answer>): Promise<Answer> {
    const known = this.#answers.get(question)
    if (known) return known
    if (this.#answers.size >= MAX_WAITING) throw new Problem(503, 'too many ask for figures at a time: try again')
    const answer = this.#before.then(read)
    this.#answers.set(question, answer)
    const forget = () => this.#answers.delete(question)
    this.#before = answer.then(() => void setTimeout(forget, KEPT_MS).unref(), forget)
    return answer
  }
}
