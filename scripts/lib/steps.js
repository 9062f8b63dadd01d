import { CommandFailed, run } from './run.js'

/** @typedef {{ name: string, action: () => unknown }} Step */

/**
 * @param {string} script a script of the root package.json
 * @param {string[]} [args]
 * @param {{ quiet?: boolean }} [options]
 * @returns {Step}
 */
export const npmRun = (script, args = [], options = {}) => ({
  name: `npm run ${[script, ...args].join(' ')}`,
  action: () => run('npm', ['run', '--silent', script, ...(args.length > 0 ? ['--', ...args] : [])], options),
})

/**
 * Independent scripts, run at the same time. The output of each is shown when it is done.
 *
 * @param {[script: string, ...args: string[]][]} scripts
 * @returns {Step}
 */
export const npmRunAtOnce = (scripts) => ({
  name: scripts.map((words) => `npm run ${words.join(' ')}`).join(', '),
  async action() {
    const running = scripts.map(async ([script, ...args]) => {
      const startedMs = Date.now()
      const output = await npmRun(script, args, { quiet: true }).action()
      console.log(`\n── npm run ${script}: ok (${secondsSince(startedMs)} s)\n${String(output).trim()}`)
    })
    // The others may finish: further failures are worth knowing, and nothing may run after this.
    const results = await Promise.allSettled(running)
    const failures = results.flatMap((result) => (result.status === 'rejected' ? [result.reason] : []))
    if (failures.length > 0) throw new CommandFailed(failures.map(({ message }) => message).join('\n\n'), 1)
  },
})

/**
 * Runs steps one after the other, prints the duration of each, and stops at the first that fails.
 *
 * @param {Step[]} steps
 */
export async function take(steps) {
  for (const { name, action } of steps) {
    const startedMs = Date.now()
    console.log(`\n── ${name}`)
    try {
      await action()
    } catch (error) {
      throw failure(name, error)
    }
    console.log(`── ${name}: ok (${secondsSince(startedMs)} s)`)
  }
}

/**
 * Runs all steps, whatever fails, and ends with a line for each.
 *
 * @param {Step[]} steps
 */
export async function takeAll(steps) {
  const lines = []
  const failures = []
  for (const step of steps) {
    const startedMs = Date.now()
    try {
      await take([step])
      lines.push(`passed  ${step.name} (${secondsSince(startedMs)} s)`)
    } catch (error) {
      console.error(error instanceof Error ? error.message : error)
      lines.push(`FAILED  ${step.name} (${secondsSince(startedMs)} s)`)
      failures.push(step.name)
    }
  }
  console.log(`\n${lines.join('\n')}`)
  if (failures.length > 0) throw new Error(`\n${failures.length} of ${steps.length} failed`)
}

/** @param {number} startedMs */
function secondsSince(startedMs) {
  return ((Date.now() - startedMs) / 1000).toFixed(1)
}

/**
 * @param {string} name
 * @param {unknown} error
 */
function failure(name, error) {
  const reason = error instanceof Error ? error.message : String(error)
  return new CommandFailed(`\nCheck failed: ${name}\n${reason}`, error instanceof CommandFailed ? error.exitCode : 1)
}
