import { spawn } from 'node:child_process'
import { availableParallelism } from 'node:os'

/** Ends with its parent, however that ends. */
const LOOP = 'while (process.ppid === Number(process.argv[1]));'

/**
 * A step beside two busy loops for each processor.
 *
 * @param {import('./steps.js').Step} step
 * @returns {import('./steps.js').Step}
 */
export const besideBusyLoops = ({ name, action }) => ({
  name: `${name}, beside busy loops`,
  async action() {
    const loops = Array.from({ length: 2 * availableParallelism() }, () =>
      spawn(process.execPath, ['-e', LOOP, String(process.pid)]),
    )
    try {
      await action()
    } finally {
      for (const loop of loops) loop.kill('SIGKILL')
    }
  },
})
