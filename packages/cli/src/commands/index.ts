import type { Command } from '../program/command.js'
import { bans, block, blocks, unblock } from './blocks/commands.js'
import { changes } from './changes/command.js'
import { console } from './console/command.js'
import { doctor } from './doctor/command.js'
import { explain } from './explain/command.js'
import { forget } from './forget/command.js'
import { inspect } from './inspect/command.js'
import { migrate } from './migrate/command.js'
import { offenders } from './offenders/command.js'
import { override } from './override/command.js'
import { apply, history, plan, rollback } from './policies/commands.js'
import { reset } from './reset/command.js'
import { serve } from './serve/command.js'
import { simulate } from './simulate/command.js'
import { validate } from './validate/command.js'

/** Every command, in the order of the help. */
export const COMMANDS: readonly Command[] = [
  validate,
  explain,
  simulate,
  serve,
  plan,
  apply,
  history,
  rollback,
  override,
  migrate,
  inspect,
  reset,
  blocks,
  bans,
  block,
  unblock,
  offenders,
  forget,
  console,
  changes,
  doctor,
]
