import { causeOf } from './causes.js'

/** The connection is unusable; `advice` is the remedy. */
export class Unreachable extends Error {
  readonly advice: string

  constructor(message: string, advice: string) {
    super(message)
    this.advice = advice
  }
}

/** Redis refused one command: its user may not run it, or it is renamed or disabled. */
export class NotPermitted extends Error {
  /** As an ACL names it: `config|get`. */
  readonly command: string

  constructor(command: string) {
    super(`${command.toUpperCase()} is not permitted`)
    this.command = command
  }
}

/** Turns any error of the client into one of ours, without credentials. `command` as an ACL names it. */
export function failureOf(error: unknown, command: string, where: string): Error {
  if (error instanceof Unreachable || error instanceof NotPermitted) return error
  const text = error instanceof Error ? error.message : String(error)
  if (/^NOPERM|unknown command|unknown subcommand/i.test(text)) return new NotPermitted(command)
  const cause = causeOf(error)
  return new Unreachable(`${where}: ${cause.what}.`, `${cause.advice}.`)
}
