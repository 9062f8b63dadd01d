import { listed } from '@sluice/core/internal'
import { NotPermitted } from '../../../redis/redis-failure.js'
import type { Server } from '../../../redis/server.js'
import type { Check } from '../check.js'
import { type CheckResult, error, ok, warning } from '../finding.js'
import type { DoctorOptions } from '../options.js'
import { KEY_LAYOUT, type NeededCommand, neededCommands } from '../store-needs.js'
import { isAtLeast } from './version.js'

/**
 * Redis checks permissions before it refuses writes in a script that may only read. Every command of the store can therefore be
 * tried, SET and DEL included, and none of those that write runs.
 */
const TRY_COMMANDS = `#!lua flags=no-writes
local replies = {}
for i, command in ipairs(ARGV) do
  local reply = redis.pcall(unpack(cjson.decode(command)))
  replies[i] = type(reply) == 'table' and reply.err or ''
end
return replies`

/** No script has this name: Redis replies NOSCRIPT to a user who may run EVALSHA. */
const NO_SCRIPT = '0'.repeat(40)

const KEY_DENIED = /access at least one of the keys|to access the '[^']*' key/
const COMMAND_DENIED = /can't run this command|no permissions to run|NOPERM|ACL failure/
const UNKNOWN = /unknown(?: [a-z]+)? command/i

/** Whether the user of this connection may run every command of the store. */
export const permissions: Check = {
  name: 'permissions',
  async look(server, options) {
    const denied = await deniedScripting(server)
    if (denied.includes('eval')) {
      return [
        error(
          `User ${show(server.user)} may not run ${listed(denied.map(upper))}, without which nothing is decided; other commands were not tried.`,
          grant(server, denied),
          { denied },
        ),
      ]
    }
    if (!(await hasReadingScripts(server))) {
      return [
        warning(
          'Redis before 7.0 cannot be asked what a user may do without writing, so permissions were not checked.',
          'Compare ACL GETUSER with the permissions that SECURITY.md of Sluice lists.',
        ),
      ]
    }
    return lookAtCommands(server, options, denied)
  },
}

async function deniedScripting(server: Server): Promise<string[]> {
  const denied: string[] = []
  const attempts = [
    ['EVAL', 'return 1', 0],
    ['EVALSHA', NO_SCRIPT, 0],
  ] as const
  for (const [command, ...args] of attempts) {
    try {
      await server.call(command, ...args)
    } catch (failure) {
      if (failure instanceof NotPermitted) denied.push(failure.command)
      else if (!/NOSCRIPT/.test(String(failure))) throw failure
    }
  }
  return denied
}

async function hasReadingScripts(server: Server): Promise<boolean> {
  try {
    return isAtLeast((await server.info()).redis_version ?? '', [7, 0])
  } catch (failure) {
    // Without it, the script does not compile, and nothing runs.
    if (failure instanceof NotPermitted) return true
    throw failure
  }
}

async function lookAtCommands(
  server: Server,
  { prefix }: DoctorOptions,
  deniedBefore: readonly string[],
): Promise<CheckResult[]> {
  const commands = neededCommands(`${prefix}${KEY_LAYOUT}:{doctor}:probe`)
  let replies: string[]
  try {
    replies = (await server.call(
      'EVAL',
      TRY_COMMANDS,
      0,
      ...commands.map(({ words }) => JSON.stringify(words)),
    )) as string[]
  } catch (failure) {
    if (!(failure instanceof Error) || failure.name !== 'ReplyError') throw failure
    return [
      warning(
        'Redis does not run the script that tries what its user may do, so permissions were not checked.',
        'Compare ACL GETUSER with the permissions that SECURITY.md of Sluice lists.',
      ),
    ]
  }
  const refused = commands.filter((_, i) => COMMAND_DENIED.test(replies[i] ?? '') && !KEY_DENIED.test(replies[i] ?? ''))
  const missing = commands.filter((_, i) => UNKNOWN.test(replies[i] ?? ''))
  const saysKeys = replies.some((reply) => KEY_DENIED.test(reply))
  const results = [
    ...ofKeys(server, prefix, saysKeys),
    ...ofMissing(missing),
    ...ofRefused(server, refused, deniedBefore),
  ]
  const all = commands.length + 2
  return results.length > 0
    ? results
    : [ok(`All ${all} commands that Sluice needs are permitted on ${prefix}*.`, { commands: all })]
}

function ofKeys(server: Server, prefix: string, isDenied: boolean): CheckResult[] {
  if (!isDenied) return []
  const pattern = `~${prefix}*`
  return [
    error(
      `User ${show(server.user)} may not use keys that start with ${show(prefix)}.`,
      `Grant them: ACL SETUSER ${server.user} ${pattern}`,
      { keys: pattern },
    ),
  ]
}

function ofMissing(missing: readonly NeededCommand[]): CheckResult[] {
  if (missing.length === 0) return []
  const names = missing.map(nameOf)
  return [
    error(
      `Redis does not know ${listed(names.map(upper))}: renamed or disabled.`,
      'Remove the rename-command lines from redis.conf, and restrict users by ACL instead.',
      { missing: names },
    ),
  ]
}

function ofRefused(server: Server, refused: readonly NeededCommand[], deniedBefore: readonly string[]): CheckResult[] {
  const results: CheckResult[] = []
  const always = [...deniedBefore, ...refused.filter(({ feature }) => !feature).map(nameOf)]
  if (always.length > 0) {
    results.push(
      error(
        `User ${show(server.user)} may not run ${listed(always.map(upper))}: every decision fails and is left to the option unavailable.`,
        grant(server, always),
        { denied: always },
      ),
    )
  }
  for (const feature of new Set(refused.map((command) => command.feature))) {
    if (!feature) continue
    const names = refused.filter((command) => command.feature === feature).map(nameOf)
    results.push(
      error(
        `User ${show(server.user)} may not run ${listed(names.map(upper))}, which ${feature} needs.`,
        grant(server, names),
        {
          denied: names,
          feature,
        },
      ),
    )
  }
  return results
}

function nameOf({ words: [name = ''] }: NeededCommand): string {
  return name.toLowerCase()
}

function grant({ user }: Server, commands: readonly string[]): string {
  return `Grant it: ACL SETUSER ${user} ${commands.map((command) => `+${command}`).join(' ')}`
}

const upper = (name: string) => name.toUpperCase()

const show = (text: string) => JSON.stringify(text)
