/** The command line cannot be understood. The message says what to write instead, and never repeats a URL. */
export class UsageError extends Error {}
