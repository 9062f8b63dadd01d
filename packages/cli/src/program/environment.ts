/** Where a command writes; `process.stdout` is one. */
export interface Output {
  write(text: string): unknown
  /** Whether a person reads the output: colours are only for people. */
  readonly isTTY?: boolean
  /** Width in characters, where it is known. */
  readonly columns?: number | undefined
}

/** The surroundings of a command. `process` provides all of it but the version. */
export interface Environment {
  readonly env: Readonly<Record<string, string | undefined>>
  readonly stdout: Output
  readonly stderr: Output
  /** Asks a person on the terminal; absent where there is none. */
  readonly confirm?: (question: string) => Promise<boolean>
  /** Resolves when a signal requests the end of the process; `serve` ends then. Absent: it serves until the process is killed. */
  readonly untilStopped?: () => Promise<void>
  /** Version of the package. */
  readonly version: string
}
