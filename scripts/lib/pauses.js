import { execFileSync } from 'node:child_process'
import { setTimeout as sleep } from 'node:timers/promises'

/** So long that every timeout of a second is over. */
const PAUSE_MS = 1500
/** Between two pauses, on average. */
const EVERY_MS = 800

/**
 * A step whose processes are paused, one at a time, as by a machine that runs others meanwhile.
 *
 * @param {import('./steps.js').Step} step
 * @returns {import('./steps.js').Step}
 */
export const besidePauses = ({ name, action }) => ({
  name: `${name}, with pauses`,
  async action() {
    const over = new AbortController()
    const pauses = pauseDescendants(over.signal)
    try {
      await action()
    } finally {
      over.abort()
      await pauses
    }
  },
})

/** @param {AbortSignal} signal */
async function pauseDescendants(signal) {
  const wait = (/** @type {number} */ ms) => sleep(ms, undefined, { signal }).catch(() => {})
  while (!signal.aborted) {
    const all = runningDescendants()
    const pid = all[Math.floor(Math.random() * all.length)]
    if (pid !== undefined && send(pid, 'SIGSTOP')) {
      await wait(PAUSE_MS)
      send(pid, 'SIGCONT')
    }
    await wait(2 * EVERY_MS * Math.random())
  }
}

/** Without those that a test itself has stopped. */
function runningDescendants() {
  const lines = execFileSync('ps', ['-A', '-o', 'pid=,ppid=,stat='], { encoding: 'utf8' }).trim().split('\n')
  const processes = lines.map((line) => {
    const [pid, parent, state = ''] = line.trim().split(/ +/)
    return { pid: Number(pid), parent: Number(parent), isRunning: !/^[TZ]/.test(state) }
  })
  const found = [{ pid: process.pid, isRunning: false }]
  // Grows while it is walked.
  for (const { pid } of found) found.push(...processes.filter(({ parent }) => parent === pid))
  return found.filter(({ isRunning }) => isRunning).map(({ pid }) => pid)
}

/**
 * @param {number} pid
 * @param {NodeJS.Signals} signal
 */
function send(pid, signal) {
  try {
    return process.kill(pid, signal)
  } catch {
    // It has ended meanwhile.
    return false
  }
}
