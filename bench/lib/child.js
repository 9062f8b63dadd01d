// Processes of a measurement, so that no contestant affects the heap or the compiled code of another.
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'

/**
 * @typedef {object} Child
 * @property {(method: string, params?: unknown) => Promise<any>} call
 * @property {() => Promise<void>} end
 */

/**
 * Starts a module that calls `answer`.
 *
 * @param {URL} module
 * @param {string[]} [execArgv] for Node, such as `--expose-gc`
 * @returns {Child}
 */
export function startChild(module, execArgv = []) {
  const child = fork(fileURLToPath(module), [], { execArgv, stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })
  /** @type {Map<number, { resolve: (value: any) => void, reject: (error: Error) => void }>} */
  const waiting = new Map()
  let ids = 0
  child.on('message', (/** @type {{ id: number, result?: unknown, error?: string }} */ { id, result, error }) => {
    const call = waiting.get(id)
    waiting.delete(id)
    if (error === undefined) call?.resolve(result)
    else call?.reject(new Error(error))
  })
  const closed = once(child, 'close')
  child.on('close', () => {
    for (const { reject } of waiting.values()) reject(new Error(`${module.pathname} has ended`))
  })
  return {
    call: (method, params) =>
      new Promise((resolve, reject) => {
        const id = ids++
        waiting.set(id, { resolve, reject })
        child.send({ id, method, params })
      }),
    async end() {
      child.kill('SIGKILL')
      await closed
    },
  }
}

/**
 * In the child: the methods that the parent can call. The child ends with the process that started it.
 *
 * @param {Record<string, (params: any) => unknown>} methods
 */
export function answer(methods) {
  process.on('disconnect', () => process.exit())
  // The user stops the parent, which ends its children.
  process.on('SIGINT', () => {})
  process.on('message', async (/** @type {{ id: number, method: string, params: unknown }} */ message) => {
    const { id, method, params } = message
    try {
      process.send?.({ id, result: await methods[method]?.(params) })
    } catch (error) {
      process.send?.({ id, error: error instanceof Error ? String(error.stack) : String(error) })
    }
  })
}
