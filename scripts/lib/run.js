import { spawn } from 'node:child_process'
import { realpathSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { root } from './project.js'

/** @typedef {{ cwd?: string, env?: Record<string, string>, quiet?: boolean }} RunOptions */

/** On the PATH, so that a script finds the project's tools when it is started without npm, too. */
export const programs = join(root, 'node_modules/.bin')

/** A command that could not start, or ended with anything but 0. */
export class CommandFailed extends Error {
  /**
   * @param {string} message
   * @param {number} exitCode the command's own, 127 when it could not start, 1 when a signal ended it
   */
  constructor(message, exitCode) {
    super(message)
    this.exitCode = exitCode
  }
}

/** @type {Set<import('node:child_process').ChildProcess>} */
const running = new Set()

/** @param {NodeJS.Signals} signal */
function passOn(signal) {
  for (const child of running) child.kill(signal)
}

/**
 * Runs a command to its end and resolves with what it printed (only when quiet; otherwise it prints for itself).
 * SIGINT and SIGTERM are passed on, so that stopping a script stops what it runs.
 *
 * @param {string} command
 * @param {string[]} args
 * @param {RunOptions} [options]
 * @returns {Promise<string>}
 */
export function run(command, args, { cwd = root, env = {}, quiet = false } = {}) {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, {
      cwd,
      env: { ...process.env, PATH: `${programs}${delimiter}${process.env.PATH}`, ...env },
      stdio: quiet ? ['ignore', 'pipe', 'pipe'] : 'inherit',
    })
    let output = ''
    for (const stream of [child.stdout, child.stderr]) {
      stream?.setEncoding('utf8').on('data', (chunk) => {
        output += chunk
      })
    }

    if (running.size === 0) process.on('SIGINT', passOn).on('SIGTERM', passOn)
    running.add(child)
    const done = () => {
      running.delete(child)
      if (running.size === 0) process.off('SIGINT', passOn).off('SIGTERM', passOn)
    }

    /** @param {string} what @param {number} exitCode */
    const fail = (what, exitCode) => {
      reject(new CommandFailed(`${[command, ...args].join(' ')}: ${what}\n${output}`.trim(), exitCode))
    }
    child.on('error', (error) => {
      done()
      fail(error.message, 127)
    })
    child.on('close', (code, signal) => {
      done()
      if (code === 0) resolve(output)
      else fail(`ended with ${signal ?? `exit code ${code}`}`, code ?? 1)
    })
  })
}

/**
 * Runs a script's main function when the file was started as a program, not when a test imports it.
 *
 * @param {string} moduleUrl the caller's `import.meta.url`
 * @param {() => unknown} main
 */
export async function whenStarted(moduleUrl, main) {
  if (process.argv[1] === undefined || pathToFileURL(realpathSync(process.argv[1])).href !== moduleUrl) return
  try {
    await main()
  } catch (error) {
    console.error(error instanceof Error ? error.message : error)
    process.exitCode = error instanceof CommandFailed ? error.exitCode : 1
  }
}
