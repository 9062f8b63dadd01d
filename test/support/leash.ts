import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'

/**
 * Starts the command, says its pid, and waits for the end of its own input. That end comes when the
 * test lets go and also when the test process dies, however it dies (SIGKILL runs no exit handler),
 * so nothing is ever left behind. SIGKILL, because a stopped process obeys nothing else.
 */
export const HOLD = `trap '' INT TERM HUP
dir=$1; shift
"$@" </dev/null &
pid=$!
echo "$pid"
read -r _
kill -9 "$pid" 2>/dev/null
wait "$pid" 2>/dev/null
rm -rf "$dir"`

/** A process that cannot outlive this one. */
export interface Leashed {
  readonly pid: number
  /** Its standard error so far. */
  errorText(): string
  /** Kills it, removes its directory, and waits for both. */
  end(): Promise<void>
}

/** Runs `command`; `dir` is its own directory, removed at the end. */
export async function startLeashed(command: string, args: readonly string[], dir: string): Promise<Leashed> {
  const holder = spawn('/bin/sh', ['-c', HOLD, 'sh', dir, command, ...args], { stdio: ['pipe', 'pipe', 'pipe'] })
  let errors = ''
  holder.stderr.setEncoding('utf8').on('data', (text: string) => {
    errors += text
  })
  holder.stdin.on('error', () => {})
  const pid = await firstLine(holder)
  return {
    pid,
    errorText: () => errors,
    async end() {
      if (holder.exitCode !== null || holder.signalCode !== null) return
      const closed = once(holder, 'close')
      holder.stdin.end()
      await closed
    },
  }
}

async function firstLine(holder: ChildProcess): Promise<number> {
  const lines = createInterface({ input: holder.stdout as NodeJS.ReadableStream })
  const [line] = (await once(lines, 'line')) as [string]
  lines.close()
  // The command shares this pipe: it must not fill up.
  holder.stdout?.resume()
  return Number(line)
}
