/** One request of an access log. Readers make one for each line, and nothing keeps it after its replay. */
export interface LogRecord {
  /** The earliest start of the request, in ms since the Unix epoch: the time in the log, less the duration where that is known. */
  readonly startMs: number
  /** The start lies in `[startMs, startMs + resolutionMs)`: 1000 for times to the second. At least 1. */
  readonly resolutionMs: number
  /** From start to end, in ms. Undefined if the log has none. */
  readonly durationMs: number | undefined
  /** The address of the connection, as written. */
  readonly ip: string | undefined
  readonly method: string | undefined
  /** Path with its query, as the client sent it. */
  readonly target: string | undefined
  /** Undefined if the log has none, as for a request that was aborted. */
  readonly status: number | undefined
  /** Bytes of the response. */
  readonly bytes: number | undefined
  /** The authenticated user. */
  readonly user: string | undefined
  readonly agent: string | undefined
  readonly host: string | undefined
  /** A request header by its name in lower case. Undefined if the log lacks it. */
  header(name: string): string | undefined
  /** A field of the line by its path, such as `.user.id` for JSON, or its name in a `log_format`, such as `remote_user`. */
  field(path: string): string | undefined
}
