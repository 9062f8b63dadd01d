import type { Command } from '../program/command.js'
import { doctor } from './doctor/command.js'
import { explain } from './explain/command.js'
import { apply, history, plan, rollback } from './policies/commands.js'
import { validate } from './validate/command.js'

/** Every command, in the order of the help. */
export const COMMANDS: readonly Command[] = [validate, explain, plan, apply, history, rollback, doctor]
