/** One request of an access log. Readers make one for each line, and nothing keeps it after its replay. */
export interface LogRecord {
  /** The earliest start of the request, in ms since the Unix epoch: the time in the log, less the duration where that is known. */
  startMs: number
  /** The start lies in `[startMs, startMs + resolutionMs)`: 1000 for times to the second. At least 1. */
  resolutionMs: number
  /** From start to end, in ms. Undefined where the log has none. */
  durationMs: number | undefined
  /** The address of the connection, as written. */
  ip: string | undefined
  method: string | undefined
  /** Path with its query, as the client sent it. */
  target: string | undefined
  /** Undefined where the log has none, as for a request that was aborted. */
  status: number | undefined
  /** Bytes of the response. */
  bytes: number | undefined
  /** The authenticated user. */
  user: string | undefined
  agent: string | undefined
  host: string | undefined
  /** A request header by its name in lower case. Undefined where the log lacks it. */
  header(name: string): string | undefined
  /** A field of the line by its path, such as `.user.id` for JSON, or its name in a `log_format`, such as `remote_user`. */
  field(path: string): string | undefined
}
