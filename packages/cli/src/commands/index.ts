import type { Command } from '../program/command.js'
import { bans, block, blocks, unblock } from './blocks/commands.js'
import { doctor } from './doctor/command.js'
import { explain } from './explain/command.js'
import { migrate } from './migrate/command.js'
import { apply, history, plan, rollback } from './policies/commands.js'
import { validate } from './validate/command.js'

/** Every command, in the order of the help. */
export const COMMANDS: readonly Command[] = [
  validate,
  explain,
  plan,
  apply,
  history,
  rollback,
  migrate,
  blocks,
  bans,
  block,
  unblock,
  doctor,
]
